"""Stands where vLLM's server does: the mock server with vLLM's arguments, endpoints and habits.

It has a child process, as vLLM has its engine core, which ends when the server does. STAND_IN makes
it fail: `crash`, `silent` (never healthy), `no_reset` (of its prefix cache), `orphan` (the child
does not notice), `stubborn` (deaf to SIGTERM, child included).
"""

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.mock_openai_server import build_app

FAILURE = os.environ.get("STAND_IN", "")


async def reset_prefix_cache(request: Request) -> Response:
    return Response(status_code=404 if FAILURE == "no_reset" else 200)


async def unhealthy(request: Request) -> Response:
    return Response(status_code=503)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--middleware", action="append", default=[])
    arguments, others = parser.parse_known_args()
    print("arguments:", *others, flush=True)
    if FAILURE == "crash":
        sys.exit("ValueError: no such architecture")
    if FAILURE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which the child inherits
    child = ["sleep", "3600"] if FAILURE in ("orphan", "stubborn") else ["cat"]
    subprocess.Popen(child, stdin=subprocess.PIPE)
    app = build_app(arguments.middleware)
    app.routes.insert(0, Route("/reset_prefix_cache", reset_prefix_cache, methods=["POST"]))
    if FAILURE == "silent":
        app.routes.insert(0, Route("/health", unhealthy))
    listener = socket.create_server(("127.0.0.1", arguments.port))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    if FAILURE == "stubborn":
        server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()

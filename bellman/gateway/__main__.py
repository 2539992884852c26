"""Run the gateway: `python -m bellman.gateway --upstream http://127.0.0.1:8000 --port 8001`."""

import asyncio
import logging
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import uvicorn
from uvicorn.supervisors import Multiprocess

from bellman.errors import ConfigError, RunError
from bellman.gateway.app import gateway_app
from bellman.gateway.arguments import Arguments, control, read_arguments
from bellman.gateway.protocol import GatewayProtocol
from bellman.serving.metrics import MULTIPROCESS
from bellman.store.open import open_store

DRAIN_S = 2
"""Requests in flight get so long to end when the gateway is asked to stop."""
WORKER_ANSWERS_S = 10
"""A worker process that does not answer its supervisor for so long is replaced; it may be slow to
start on a loaded machine."""


def listen(host: str, port: int) -> socket.socket:
    """Bind the gateway's address; raises `RunError` when it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise RunError(f"cannot listen on {host}:{port}: {error.strerror}; try --port") from None
    # Inherited by every connection: asyncio leaves Nagle's algorithm on for a socket given to it,
    # which holds back each small write of a stream for up to 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def serve(arguments: Arguments) -> None:
    """Serve until asked to stop; raises `ConfigError` and `RunError`."""
    check = control(arguments.controller)
    if arguments.store is not None:
        asyncio.run(open_store(arguments.store, check.period_s).close())
    listener = listen(arguments.host, arguments.port)
    config = uvicorn.Config(
        partial(gateway_app, arguments),
        factory=True,
        workers=arguments.workers,
        http=GatewayProtocol,
        loop="asyncio",
        ws="none",  # an Upgrade header is this connection's and goes no further
        lifespan="on",
        proxy_headers=False,  # a client does not choose its own address
        log_level="warning",
        server_header=False,  # the upstream's own pass through
        date_header=False,
        timeout_graceful_shutdown=DRAIN_S,
        timeout_worker_healthcheck=WORKER_ANSWERS_S,
    )
    host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
    print(f"http://{host}:{listener.getsockname()[1]}", flush=True)
    if arguments.workers == 1:
        server = uvicorn.Server(config)
        if arguments.with_parent:
            _when_parent_ends(lambda: setattr(server, "should_exit", True))
        server.run(sockets=[listener])
        return
    with tempfile.TemporaryDirectory(prefix="bellman-gateway-") as folder:
        os.environ[MULTIPROCESS] = folder  # for the workers' metrics
        workers = Multiprocess(config, sockets=[listener])
        if arguments.with_parent:
            _when_parent_ends(workers.should_exit.set)
        workers.run()


def _when_parent_ends(stop: Callable[[], None]) -> None:
    """Stop when the standard input, a pipe from the parent, closes."""

    def read() -> None:
        while os.read(0, 1024):
            pass
        stop()

    threading.Thread(target=read, daemon=True).start()


def main() -> None:
    """Run the command."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    try:
        with suppress(KeyboardInterrupt):
            serve(read_arguments(__doc__))
    except (ConfigError, RunError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()

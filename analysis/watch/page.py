"""The page: three files of our own and what there is to see as JSON, on loopback alone."""

import os
import socket
import threading
import time
from pathlib import Path

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from analysis.watch.run import RunWatch
from analysis.watch.view import RunView
from bellman.errors import RunError

HOST = "127.0.0.1"
HOSTS = [HOST, "localhost"]
"""By these names alone: another site's page cannot read a run through a name of its own."""
FILES = {"/": "page.html", "/page.css": "page.css", "/page.js": "page.js"}
HEADERS = {
    "content-security-policy": "default-src 'self'; img-src data:; frame-ancestors 'none'",
    "cache-control": "no-store",
}
LOOK_S = 1.0
"""The folder is looked at no more often, however many pages are open, and never where none is."""
NICENESS = 10
"""A run on the same machine goes first."""


class Looks:
    """The latest look at a run, for any number of threads."""

    def __init__(self, watch: RunWatch) -> None:
        self._watch = watch
        self._lock = threading.Lock()
        self._view: RunView | None = None
        self._looked_s = 0.0

    def latest(self) -> RunView:
        """Return what there is to see, at most `LOOK_S` old."""
        with self._lock:
            now_s = time.monotonic()
            if self._view is None or now_s - self._looked_s >= LOOK_S:
                self._view, self._looked_s = self._watch.look(), now_s
            return self._view


def build_app(watch: RunWatch) -> Starlette:
    """Build the app."""
    looks = Looks(watch)

    def view(request: Request) -> Response:
        content = msgspec.json.encode(looks.latest())
        return Response(content, media_type="application/json", headers=HEADERS)

    def file(request: Request) -> Response:
        return FileResponse(Path(__file__).with_name(FILES[request.url.path]), headers=HEADERS)

    routes = [Route("/view", view), *(Route(path, file) for path in FILES)]
    return Starlette(
        routes=routes, middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS)]
    )


def serve(folder: Path, port: int) -> None:
    """Serve the page until ended; prints its URL. Raises `RunError` where the port is taken."""
    try:
        listener = socket.create_server((HOST, port))
    except OSError as error:
        reason = f"cannot listen on {HOST}:{port}: {error.strerror}; try --port"
        raise RunError(reason) from None
    os.nice(NICENESS)
    print(f"http://{HOST}:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(
        build_app(RunWatch(folder)), log_level="warning", timeout_graceful_shutdown=1
    )
    uvicorn.Server(config).run(sockets=[listener])

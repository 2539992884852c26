"""The ASGI middleware that makes any server signal its congestion.

vLLM loads it by its import path: `--middleware bellman.serving.middleware.CongestionMiddleware`
(vLLM calls `app.add_middleware(cls)`, so the app is the only argument it gives). It is plain ASGI:
a response passes message by message and is never collected.
"""

import asyncio
import ipaddress
import json
import logging
import os
from contextlib import suppress
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bellman.controllers.publisher import SignalPublisher
from bellman.engines.base import Control
from bellman.errors import ConfigError
from bellman.serving.control import ALLOWED, control_from_environment, parse_control
from bellman.serving.metrics import MULTIPROCESS, registry_reader
from bellman.serving.sensor import Sensor
from bellman.signal import HEADER

GENERATING = (
    "/chat/completions",
    "/completions",
    "/responses",
    "/messages",
    "/generate",
    "/generate_stream",
)
"""Ends of the paths whose POST requests occupy the engine: these are counted and gated."""
HEADER_BYTES = HEADER.encode()

logger = logging.getLogger(__name__)


class CongestionMiddleware:
    """Runs the law on the server's loop; every HTTP response carries the level."""

    def __init__(
        self, app: ASGIApp, sensor: Sensor | None = None, control: Control | None = None
    ) -> None:
        self._app = app
        self._sensor = sensor or Sensor(registry_reader(), shared=MULTIPROCESS in os.environ)
        self._refused = 0
        self._law: asyncio.Task[None] | None = None
        self._use(control or control_from_environment())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "lifespan":
            self._run_law()
            try:
                await self._app(scope, receive, send)
            finally:
                self._stop_law()
        elif scope["type"] == "http":
            self._run_law()  # servers run without lifespan, too
            await self._serve(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def send_with_level(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message = {**message, "headers": self._with_level(message.get("headers", ()))}
            await send(message)

        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path in ("/bellman/congestion", "/bellman/control"):
            response = await self._answer(path, Request(scope, receive))
            await response(scope, receive, send_with_level)
            return
        try:
            if scope["method"] == "POST" and path.endswith(GENERATING):
                await self._generate(scope, receive, send_with_level)
            else:
                await self._app(scope, receive, send_with_level)
        except Exception as error:
            # The server's own handler for this stands outside and would answer without the level.
            if not started:
                response = _error(500, "InternalServerError", str(error) or type(error).__name__)
                await response(scope, receive, send_with_level)
            raise

    async def _generate(self, scope: Scope, receive: Receive, send: Send) -> None:
        reason = self._control.admission.refuse(self._sensor.observe())
        if reason is not None:
            self._refused += 1
            await _error(429, "RateLimitError", reason)(scope, receive, send)
            return
        self._sensor.in_flight += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._sensor.in_flight -= 1

    def _with_level(self, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        others = [item for item in headers if item[0].lower() != HEADER_BYTES]
        return [*others, (HEADER_BYTES, self._publisher.header.encode())]

    async def _answer(self, path: str, request: Request) -> Response:
        method = "GET" if path == "/bellman/congestion" else "PUT"
        if request.method != method:
            return _error(405, "MethodNotAllowed", f"use {method}")
        if method == "GET":
            return JSONResponse(self._state())
        return _forbidden(request) or await self._switch(request)

    async def _switch(self, request: Request) -> Response:
        """Take the control in a request's body and start its law afresh."""
        try:
            control = parse_control(json.loads(await request.body()))
        except ConfigError as error:
            return _error(400, "BadRequestError", str(error))
        except ValueError as error:
            return _error(400, "BadRequestError", f"not JSON: {error}")
        self._stop_law()
        self._use(control)
        self._run_law()
        return JSONResponse(self._state())

    def _state(self) -> dict[str, object]:
        """Return what GET /bellman/congestion says; see docs/signal.md."""
        signal, observation = self._publisher.signal, self._publisher.observation
        now_s = asyncio.get_running_loop().time()
        return {
            "level": signal.level,
            "age_s": None if observation is None else now_s - signal.time_s,
            "observation": asdict(self._sensor.observe()),
            "controller": self._control.controller.name,
            "admission": self._control.admission.name,
            "period_s": self._control.period_s,
            "refused_total": self._refused,
        }

    def _use(self, control: Control) -> None:
        """Take a control, with its law at its start and its counters at 0."""
        self._control = control
        self._refused = 0
        self._publisher = SignalPublisher(control.controller, self._sensor.sense, control.period_s)

    def _run_law(self) -> None:
        if self._law is None:
            self._law = asyncio.get_running_loop().create_task(self._publisher.run())
            self._law.add_done_callback(_report)

    def _stop_law(self) -> None:
        if self._law is not None:
            self._law.cancel()
            self._law = None


def _report(law: asyncio.Task[None]) -> None:
    """Say that a law broke: its last level stands from then on and grows old."""
    with suppress(asyncio.CancelledError):
        error = law.exception()
        if error is not None:
            logger.error("the control law stopped: %s", error, exc_info=error)


def _forbidden(request: Request) -> Response | None:
    """Return why this client may not switch the control, or None."""
    if os.environ.get(ALLOWED) != "1":
        return _error(403, "Forbidden", f"start the server with {ALLOWED}=1 to allow this")
    host = request.client.host if request.client is not None else ""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        return _error(403, "Forbidden", "only from the server's own machine")
    if MULTIPROCESS in os.environ:
        message = "several API server processes: start with --api-server-count 1"
        return _error(409, "Conflict", message)
    return None


def _error(status: int, kind: str, message: str) -> Response:
    """Return an error in OpenAI's form, as vLLM writes it."""
    body = {"error": {"message": message, "type": kind, "param": None, "code": status}}
    return JSONResponse(body, status)

"""The ASGI middleware that makes any server signal its congestion.

vLLM loads it by its import path: `--middleware bellman.serving.middleware.CongestionMiddleware`
(vLLM calls `app.add_middleware(cls)`, so the app is the only argument it gives). It is plain ASGI:
a response passes message by message and is never collected.
"""

import asyncio
import ipaddress
import json
import os
from collections.abc import Callable
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bellman.admission.accept_all import AcceptAll
from bellman.admission.base import TOO_MANY_REQUESTS, Door, Outcome, Permit, Refusal
from bellman.controllers.base import Controller
from bellman.controllers.publisher import Publisher, SignalPublisher
from bellman.engines.base import Control
from bellman.errors import ConfigError
from bellman.sensing.failure import SensorFailed
from bellman.serving.arrival import arrival_of
from bellman.serving.control import ALLOWED, control_from_environment, parse_control
from bellman.serving.exposition import exposition
from bellman.serving.metrics import MULTIPROCESS, registry_reader
from bellman.serving.refusal import ConnectionBroken, RequestRefused, answer_refused, error_response
from bellman.serving.sensor import Sensor
from bellman.serving.upload import read_upload, replayed
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
OWN = {"/bellman/congestion": "GET", "/bellman/metrics": "GET", "/bellman/control": "PUT"}
"""Paths that the middleware answers itself, with their methods."""
HEADER_BYTES = HEADER.encode()


class CongestionMiddleware:
    """Runs the law on the server's loop; every response carries the level, while there is one."""

    def __init__(
        self,
        app: ASGIApp,
        sensor: Sensor | None = None,
        control: Control | None = None,
        publish: Callable[[Controller, float], Publisher] | None = None,
    ) -> None:
        """`publish` makes the publisher of a law and its period: one that others take part in."""
        self._app = app
        self._sensor = sensor or Sensor(registry_reader(), shared=MULTIPROCESS in os.environ)
        self._publish = publish
        self._refused = 0
        self._law: asyncio.Task[None] | None = None
        self._use(control or control_from_environment())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "lifespan":
            await self.run_law()
            try:
                await self._app(scope, receive, send)
            finally:
                await self.close()
        elif scope["type"] == "http":
            await self.run_law()  # servers run without lifespan, too
            await self._serve(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    @property
    def level(self) -> float | None:
        """What is published now; None while there is no level."""
        signal = self._publisher.signal
        return None if signal is None else signal.level

    async def run_law(self) -> None:
        """Start the law, unless it runs."""
        if self._law is None or self._law.done():
            self._law = asyncio.get_running_loop().create_task(self._publisher.run())
            await asyncio.sleep(0)  # it runs once, so that the first response carries its level

    async def close(self) -> None:
        """End the law; it takes back what it shares."""
        if (law := self._stop_law()) is not None:
            await asyncio.wait((law,))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def send_with_level(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message = {**message, "headers": self._with_level(message.get("headers", ()))}
            await send(message)

        path = scope["path"].removeprefix(scope.get("root_path", ""))
        try:
            if path in OWN:
                response = await self._answer(path, scope, receive)
                await response(scope, receive, send_with_level)
            elif scope["method"] == "POST" and path.endswith(GENERATING):
                await self._generate(scope, receive, send_with_level)
            else:
                await self._app(scope, receive, send_with_level)
        except ConnectionBroken:
            pass
        except RequestRefused as refused:
            await answer_refused(refused, scope, receive, send_with_level)
        except Exception as error:
            # The server's own handler for this stands outside and would answer without the level.
            if not started:
                message = str(error) or type(error).__name__
                response = error_response(500, "InternalServerError", message)
                await response(scope, receive, send_with_level)
            raise

    async def _generate(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_upload(scope, receive)
        entry = None if self._door is None else self._enter(self._door, body)
        if isinstance(entry, Refusal):
            self._refused += 1
            await refusal_response(entry)(scope, receive, send)
            return
        outcome: Outcome = "left"

        async def send_and_note(message: Message) -> None:
            nonlocal outcome
            if message["type"] == "http.response.start" and message["status"] >= 400:
                outcome = "error"
            await send(message)
            ended = message["type"] == "http.response.body" and not message.get("more_body")
            if ended and outcome == "left":
                outcome = "ok"

        request = self._sensor.enter()
        try:
            await self._app(
                scope, replayed(body, receive), send if entry is None else send_and_note
            )
        except Exception:
            outcome = "error"
            raise
        finally:
            self._sensor.leave(request)
            if entry is not None:
                entry.done(outcome, asyncio.get_running_loop().time())

    def _enter(self, door: Door, body: bytes) -> Permit | Refusal:
        now_s = asyncio.get_running_loop().time()
        return door.acquire(arrival_of(body), self._sensor.observe(), now_s)

    def _with_level(self, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Return the headers with our level, or none: no other server's is ours."""
        others = [item for item in headers if item[0].lower() != HEADER_BYTES]
        level = self._publisher.header
        return others if level is None else [*others, (HEADER_BYTES, level.encode())]

    async def _answer(self, path: str, scope: Scope, receive: Receive) -> Response:
        method = OWN[path]
        if scope["method"] != method:
            return error_response(405, "MethodNotAllowed", f"use {method}", {"allow": method})
        if path == "/bellman/control":
            forbidden = _forbidden(Request(scope), alone=self._publish is None)
            return forbidden or await self._switch(scope, receive)
        if path == "/bellman/metrics":
            return Response(self._metrics(), media_type="text/plain; version=0.0.4")
        return JSONResponse(self.state())

    async def _switch(self, scope: Scope, receive: Receive) -> Response:
        """Take the control in a request's body and start its law afresh."""
        try:
            control = parse_control(json.loads(await read_upload(scope, receive)))
        except ConfigError as error:
            return error_response(400, "BadRequestError", str(error))
        except (ValueError, RecursionError) as error:
            return error_response(400, "BadRequestError", f"not JSON: {error}")
        self._stop_law()
        self._use(control)
        await self.run_law()
        return JSONResponse(self.state())

    def state(self) -> dict[str, object]:
        """Return what GET /bellman/congestion says; see docs/signal.md."""
        publisher = self._publisher
        sensed = not isinstance(publisher.failure, SensorFailed)
        return {
            "level": self.level,
            "age_s": self._age_s(),
            "reason": publisher.reason,
            "observation": asdict(self._sensor.observe()) if sensed else None,
            "in_flight": self._sensor.in_flight,
            "controller": type(self._control.controller).__name__,
            "admission": type(self._control.admission).__name__,
            "period_s": self._control.period_s,
            "refused_total": self._refused,
            "outages_total": publisher.outages,
        }

    def _metrics(self) -> bytes:
        """Return what GET /bellman/metrics says."""
        publisher = self._publisher
        return exposition(
            level=self.level,
            age_s=self._age_s(),
            in_flight=self._sensor.in_flight,
            refused_total=self._refused,
            outages_total=publisher.outages,
        )

    def _age_s(self) -> float | None:
        last_s = self._publisher.last_s
        return None if last_s is None else asyncio.get_running_loop().time() - last_s

    def _use(self, control: Control) -> None:
        """Take a control, with its law at its start and its counters at 0."""
        self._control = control
        accepts_all = isinstance(control.admission, AcceptAll)
        self._door: Door | None = None if accepts_all else control.admission.open()
        self._refused = 0
        self._publisher: Publisher
        if self._publish is not None:
            self._publisher = self._publish(control.controller, control.period_s)
        else:
            sense = self._sensor.sense
            self._publisher = SignalPublisher(control.controller, sense, control.period_s)

    def _stop_law(self) -> asyncio.Task[None] | None:
        law, self._law = self._law, None
        if law is not None:
            law.cancel()
        return law


def refusal_response(refusal: Refusal) -> Response:
    """Return the answer to a request that the door refuses."""
    too_many = refusal.status == TOO_MANY_REQUESTS
    wait_s = refusal.retry_after_s
    return error_response(
        refusal.status,
        "RateLimitError" if too_many else "ServiceUnavailableError",
        refusal.reason,
        None if wait_s is None else {"retry-after": str(wait_s)},
    )


def _forbidden(request: Request, alone: bool) -> Response | None:
    """Return why this client may not switch the control, or None."""
    if os.environ.get(ALLOWED) != "1":
        return error_response(403, "Forbidden", f"start the server with {ALLOWED}=1 to allow this")
    host = request.client.host if request.client is not None else ""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        return error_response(403, "Forbidden", "only from the server's own machine")
    if MULTIPROCESS in os.environ:
        message = "several API server processes: start with --api-server-count 1"
        return error_response(409, "Conflict", message)
    if not alone:
        message = "the law is shared through a store: start every gateway with the same control"
        return error_response(409, "Conflict", message)
    return None

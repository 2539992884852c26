"""The gateway of one process: its routes, and what they share."""

import asyncio
import gc
import logging
import multiprocessing
import os
import signal
import socket
from contextlib import AsyncExitStack
from uuid import uuid4

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bellman.gateway.arguments import Arguments, control
from bellman.gateway.energy import count_energy, local_server, meter_of, only_here
from bellman.gateway.metrics import GatewayMetrics
from bellman.gateway.proxy import open_upstream_pool
from bellman.gateway.route import Route
from bellman.gateway.spillover import Spillover, in_order
from bellman.gateway.target import accept_absolute_form
from bellman.serving.refusal import error_response
from bellman.signal import HEADER, format_level
from bellman.store.open import open_store
from bellman.store.publisher import LEASE_PERIODS

METRICS_PERIOD_S = 1.0
"""How old another process's counts are at most, where several answer for one gateway."""

COLLECT_AFTER = 20_000
"""Objects that are made and not freed before the garbage collector looks at them."""


def gateway_app(arguments: Arguments) -> ASGIApp:
    """Return the app of one process; uvicorn's worker processes make theirs by this, too."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    return accept_absolute_form(Gateway(arguments))


class Gateway:
    """An ASGI app that opens its routes with the server's lifespan."""

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        self._control = control(arguments.controller)
        self._routes: list[Route] = []
        self._metrics = GatewayMetrics()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await receive()
            async with AsyncExitStack() as stack:
                await self._open(stack)
                await send({"type": "lifespan.startup.complete"})
                await receive()
            await send({"type": "lifespan.shutdown.complete"})

    async def _open(self, stack: AsyncExitStack) -> None:
        given = self._arguments
        pool = await stack.enter_async_context(open_upstream_pool())
        store = None
        if given.store is not None:
            store = open_store(given.store, LEASE_PERIODS * self._control.period_s)
            stack.push_async_callback(store.close)
        gateway_id = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
        for upstream in given.upstreams:
            route = Route(
                pool,
                upstream,
                arguments=given,
                control=self._control,
                store=store,
                gateway_id=gateway_id,
            )
            stack.push_async_callback(route.close)
            self._routes.append(route)
        await asyncio.gather(*(route.open() for route in self._routes))
        self._spillover = Spillover(
            {route.endpoint_id: self._metrics.measured(route) for route in self._routes},
            self._levels,
            given.spill_above,
            self._metrics.count_spilled,
        )
        background = [asyncio.create_task(self._count())]
        if given.energy and only_here(stack):
            open_meter = meter_of(local_server(given.upstreams))
            energy = count_energy(open_meter, self._metrics.count_energy)
            background.append(asyncio.create_task(energy))
        for task in background:
            stack.callback(task.cancel)
        collect_rarely()

        if (parent := multiprocessing.parent_process()) is not None:
            # A worker process does not outlive uvicorn's supervisor, however that ends.
            loop = asyncio.get_running_loop()
            loop.add_reader(parent.sentinel, signal.raise_signal, signal.SIGTERM)
            stack.callback(loop.remove_reader, parent.sentinel)

    def _levels(self) -> list[float | None]:
        return [route.level for route in self._routes]

    def _level(self) -> dict[str, str]:
        """Return the header of our own answers: the level that the next request would meet."""
        levels = self._levels()
        level = levels[in_order(levels, self._arguments.spill_above)[0]]
        return {} if level is None else {HEADER: format_level(level)}

    async def _count(self) -> None:
        """Keep the metrics up to date that another process may answer with."""
        while True:
            self._metrics.take(self._routes)
            await asyncio.sleep(METRICS_PERIOD_S)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, app = scope["path"], self._spillover
        response: Response | None = None
        if path == "/bellman/metrics" and scope["method"] == "GET":
            text = self._metrics.exposition(self._routes)
            response = Response(text, 200, self._level(), media_type="text/plain; version=0.0.4")
        elif path == "/bellman/control" and len(self._routes) > 1:
            message = "several upstreams: start the gateway with the control"
            response = error_response(409, "Conflict", message, self._level())
        await (app if response is None else response)(scope, receive, send)


def collect_rarely() -> None:
    """Spare the requests the garbage collector's looks at what lives as long as the process.

    A full collection goes through all that the imported packages made, and stalls every request
    meanwhile; what a request makes is freed without it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)

"""The way to one upstream: its own signal, and the proxy behind it."""

import asyncio

import aiohttp

from bellman.controllers.base import Controller
from bellman.controllers.publisher import Publisher
from bellman.engines.base import Control
from bellman.gateway.arguments import Arguments, Upstream
from bellman.gateway.proxy import Proxy
from bellman.gateway.scraper import Scraper
from bellman.serving.middleware import CongestionMiddleware
from bellman.serving.sensor import Sensor
from bellman.store.base import SignalStore
from bellman.store.publisher import LEASE_PERIODS, SharedPublisher


class Route:
    """Signals for one upstream, alone or with the other gateways through a store."""

    def __init__(
        self,
        pool: aiohttp.ClientSession,
        upstream: Upstream,
        *,
        arguments: Arguments,
        control: Control,
        store: SignalStore | None,
        gateway_id: str,
    ) -> None:
        self.endpoint_id = upstream.endpoint_id
        self.shared: SharedPublisher | None = None
        """The publisher, where there is a store."""
        period_s = arguments.scrape_period_s
        self._scraper = Scraper(pool, upstream.url, period_s, expected=arguments.shared)
        self._scraping: asyncio.Task[None] | None = None
        sensor = self._sensor = Sensor(self._scraper.read, shared=arguments.shared)

        def publish(controller: Controller, period_s: float) -> Publisher:
            assert store is not None
            seat = store.seat(self.endpoint_id, gateway_id, LEASE_PERIODS * period_s)
            self.shared = SharedPublisher(controller, sensor, period_s, seat)
            return self.shared

        self._proxy = Proxy(pool, upstream.url)
        self.app = CongestionMiddleware(
            self._proxy, sensor, control, publish if store is not None else None
        )

    @property
    def level(self) -> float | None:
        """The upstream's level; None while there is none."""
        return self.app.level

    @property
    def in_flight(self) -> int:
        """Requests outstanding here."""
        return self._sensor.in_flight

    @property
    def resent(self) -> int:
        """Requests that were sent again, on a fresh connection."""
        return self._proxy.resent

    async def open(self) -> None:
        """Scrape, so that the first response has a level, and start the law."""
        await self._scraper.scrape()
        self._scraping = asyncio.create_task(self._scraper.run())
        await self.app.run_law()

    async def close(self) -> None:
        """End the law and the scraping."""
        if self._scraping is not None:
            self._scraping.cancel()
        await self.app.close()

"""Scrapes the upstream's `/metrics` for the sensor."""

import asyncio
import logging

import aiohttp

from bellman.serving.metrics import Reported, parse_metrics

DEADLINE_S = 5.0

logger = logging.getLogger(__name__)


class Scraper:
    """Keeps what the upstream reported last; nothing, where it does not answer."""

    def __init__(self, pool: aiohttp.ClientSession, upstream_url: str, period_s: float) -> None:
        self._pool = pool
        self._url = f"{upstream_url}/metrics"
        self._period_s = period_s
        self._failed = False
        self.latest = Reported()

    def read(self) -> Reported:
        """Return the last report, at most a scrape period old."""
        return self.latest

    async def run(self) -> None:
        """Scrape every period, until cancelled."""
        while True:
            self.latest = await self._scrape()
            await asyncio.sleep(self._period_s)

    async def _scrape(self) -> Reported:
        try:
            async with asyncio.timeout(DEADLINE_S), self._pool.get(self._url) as response:
                response.raise_for_status()
                report = parse_metrics(await response.text(errors="replace"))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            self._say(f"no metrics from {self._url} ({error}): every request counts as running")
            return Reported()
        if report == Reported():
            self._say(f"{self._url} has no metric we know: every request counts as running")
        else:
            self._failed = False
        return report

    def _say(self, why: str) -> None:
        """Warn once, not every period."""
        if not self._failed:
            logger.warning(why)
        self._failed = True

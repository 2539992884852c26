"""Scrapes the upstream's `/metrics` for the sensor."""

import asyncio
import logging

import aiohttp
from yarl import URL

from bellman.errors import in_one_line
from bellman.read_body import read_body
from bellman.sensing.failure import SensorFailed
from bellman.serving.metrics import Reported, parse_metrics

DEADLINE_S = 3.0
"""A scrape that takes longer has failed."""
LONGEST_BYTES = 8 * 2**20
"""Longer metrics are refused, unpacked where they come packed."""

logger = logging.getLogger(__name__)


class Scraper:
    """Keeps what the upstream reported last, while that is fresh.

    An upstream that has no metrics may be one that never had any: then nothing is reported, unless
    the metrics are `expected`. One that reported before has failed.
    """

    def __init__(
        self, pool: aiohttp.ClientSession, upstream: URL, period_s: float, expected: bool
    ) -> None:
        self._pool = pool
        self._url = upstream / "metrics"
        self._period_s = period_s
        self._expected = expected
        self._report = Reported()
        self._scraped_s = 0.0
        self._failure: str | None = "not scraped yet"
        self._said = False

    def read(self) -> Reported:
        """Return the last report; raises `SensorFailed` where there is none or it is stale."""
        failure = self._failure
        age_s = asyncio.get_running_loop().time() - self._scraped_s
        if failure is None and age_s > 2 * (self._period_s + DEADLINE_S):
            failure = f"last scraped {age_s:.0f} s ago"
        if failure is None:
            return self._report
        if self._expected:
            raise SensorFailed(f"{self._url}: {failure}")
        return Reported()

    async def run(self) -> None:
        """Scrape every period, until cancelled."""
        while True:
            await asyncio.sleep(self._period_s)
            await self.scrape()

    async def scrape(self) -> None:
        """Scrape once; what breaks is told by `read`."""
        try:
            self._report = await self._read_metrics()
            self._failure = None
            self._scraped_s = asyncio.get_running_loop().time()
            self._expected = True
        except Exception as error:  # of any answer: the scraper goes on
            self._take(error)

    async def _read_metrics(self) -> Reported:
        async with (
            asyncio.timeout(DEADLINE_S),
            self._pool.get(self._url, allow_redirects=False, auto_decompress=True) as response,
        ):
            if response.status != 200:
                raise SensorFailed(f"HTTP {response.status}")
            text = (await read_body(response, LONGEST_BYTES)).decode(errors="replace")
        try:
            report = parse_metrics(text)
        except SensorFailed:
            self._expected = True  # it has metrics that we know
            raise
        if report == Reported():
            raise SensorFailed("no metric we know")
        return report

    def _take(self, error: Exception) -> None:
        if isinstance(error, TimeoutError):
            self._failure = f"no answer within {DEADLINE_S:g} s"
        elif isinstance(error, SensorFailed):
            self._failure = str(error)
        else:
            self._failure = in_one_line(error)
        if not self._expected and not self._said:
            self._said = True
            why = f"no metrics from {self._url} ({self._failure})"
            logger.warning("%s: every request counts as running", why)

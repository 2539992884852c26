"""What the middleware and the gateway cost a request, side by side in one run.

Starts the mock server plain, with the middleware, and behind the gateway, and sends each the same
requests in turn, one at a time and a block at a time. Prints the median latency of each and the
paired ratio and difference to the plain server, with the middle half of the pairs. The mock
answers at once, so a real server's tokens come on top: the differences carry over, the ratios are
an upper bound.

    python benchmarks/middleware_cost.py [--rounds 300]
"""

import argparse
import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import numpy as np

from bellman.engines.openai.child import child_server
from bellman.engines.openai.connections import open_pool

MOCK = str(Path(__file__).parent / "mock_openai_server.py")
MIDDLEWARE = "bellman.serving.middleware.CongestionMiddleware"
CHUNKS = [" word"] * 64
CONCURRENCY = 16


async def request_s(pool: aiohttp.ClientSession, url: str, stream: bool) -> float:
    """Send one request and return the seconds to its last byte."""
    start_s = time.perf_counter()
    body = {"messages": [{"role": "user", "content": "word " * 500}], "stream": stream}
    async with pool.post(f"{url}/v1/chat/completions", json=body) as response:
        await response.read()
        assert response.status == 200
    return time.perf_counter() - start_s


async def block_s(pool: aiohttp.ClientSession, url: str, stream: bool, concurrency: int) -> float:
    """Send `concurrency` requests at once and return the mean seconds of one."""
    start_s = time.perf_counter()
    await asyncio.gather(*(request_s(pool, url, stream) for _ in range(concurrency)))
    return (time.perf_counter() - start_s) / concurrency


async def measure(rounds: int) -> None:
    """Run all three side by side and print the table."""
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(open_pool(None))
        plain = await stack.enter_async_context(child_server([MOCK]))
        inside = await stack.enter_async_context(child_server([MOCK, "--middleware", MIDDLEWARE]))
        upstream = await stack.enter_async_context(child_server([MOCK]))
        gateway = await stack.enter_async_context(
            child_server(["-m", "bellman.gateway", "--upstream", upstream, "--port", "0"])
        )
        for url in (plain, inside, upstream):
            async with pool.put(f"{url}/mock", json={"chunks": CHUNKS}) as response:
                assert response.status == 200
        urls = {"plain": plain, "middleware": inside, "gateway": gateway}
        print("source: measured; latency of one request, median over rounds; paired with plain")
        print(f"{'answer':8} {'at once':>7} {'server':11} {'ms':>7}  ratio          added ms")
        for stream in (False, True):
            for concurrency in (1, CONCURRENCY):
                await _compare(pool, urls, stream, concurrency, rounds)


async def _compare(
    pool: aiohttp.ClientSession, urls: dict[str, str], stream: bool, concurrency: int, rounds: int
) -> None:
    rounds = rounds if concurrency == 1 else max(10, rounds // concurrency)
    times: dict[str, list[float]] = {name: [] for name in urls}
    for number in range(rounds + 5):
        # Each round starts with another server, so that none always runs first.
        names = sorted(urls, key=lambda name: (list(urls).index(name) + number) % len(urls))
        for name in names:
            seconds = await block_s(pool, urls[name], stream, concurrency)
            if number >= 5:
                times[name].append(seconds)
    plain = np.array(times["plain"])
    for name in urls:
        latencies = np.array(times[name])
        ratio = np.quantile(latencies / plain, [0.5, 0.25, 0.75])
        added_ms = 1000 * np.quantile(latencies - plain, [0.5, 0.25, 0.75])
        kind = "stream" if stream else "whole"
        print(
            f"{kind:8} {concurrency:7} {name:11} {1000 * np.median(latencies):7.2f}  "
            f"{ratio[0]:.2f} [{ratio[1]:.2f}, {ratio[2]:.2f}]  "
            f"{added_ms[0]:.2f} [{added_ms[1]:.2f}, {added_ms[2]:.2f}]"
        )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    asyncio.run(measure(parser.parse_args().rounds))


if __name__ == "__main__":
    main()

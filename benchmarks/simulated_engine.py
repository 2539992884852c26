"""Speed of the simulated engine: requests a second of wall time, and how it grows with the load.

    python benchmarks/simulated_engine.py            # 1,000 to 100,000 requests
    python benchmarks/simulated_engine.py --million  # one more row

`scheduler` is the engine's core alone; `engine` is a whole session in virtual time, with a task
per request, the control law and a meter. `starved` has a seventh of the KV cache, and preempts.
The machine it runs on has a speed of its own: compare rows, not machines.
"""

import argparse
import asyncio
import resource
import time
from collections.abc import Iterator

import numpy as np
from hydra import compose, initialize
from rich.console import Console
from rich.table import Table

from bellman.admission.accept_all import AcceptAll
from bellman.build import build
from bellman.controllers.bellman import QueueLaw
from bellman.engines.base import Control, Request
from bellman.engines.simulated.engine import SimulatedEngine
from bellman.engines.simulated.scheduler import Scheduler
from bellman.engines.simulated.sequence import Sequence
from bellman.responses.base import Response

RATE_RPS = 14.0
"""About the capacity for these lengths: some 300 sequences run at a time."""
SIZES = (1_000, 10_000, 100_000)


def load(requests: int) -> Iterator[tuple[float, int, int]]:
    """Draw arrival (s), prompt and output tokens of each request."""
    random = np.random.default_rng(1)
    time_s = 0.0
    for _ in range(requests):
        time_s += random.exponential(1 / RATE_RPS)
        yield time_s, int(random.integers(200, 2500)), int(random.integers(50, 400))


def configured(*overrides: str) -> SimulatedEngine:
    """Build the default engine."""
    with initialize(config_path="../conf", version_base=None):
        engine = build(
            compose(overrides=["+engine=simulated", "+prefix_caching=false", *overrides]).engine,
            "engine",
        )
    assert isinstance(engine, SimulatedEngine)
    return engine


def run_scheduler(config: SimulatedEngine, requests: int) -> int:
    """Run the core alone; returns the preemptions."""
    finished = preemptions = 0

    def on_finish(sequence: Sequence) -> None:
        nonlocal finished, preemptions
        finished += 1
        preemptions += sequence.preemptions

    scheduler = Scheduler(config.limits, config.profile, on_finish)
    for time_s, prompt, output in load(requests):
        scheduler.add(Sequence(prompt, output, 400), time_s)
    while scheduler.next_event_s is not None:
        scheduler.advance(scheduler.next_event_s)
        scheduler.start()
    assert finished == requests
    return preemptions


class NoText:
    """A bank for forced lengths."""

    kind = "none"
    length_compliance = None

    def lookup(self, document_id: str, asked_words: int) -> Response:
        """Never asked."""
        raise NotImplementedError

    def count_tokens(self, text: str) -> int | None:
        """Return None: there is no prompt to count."""
        return None


def run_engine(config: SimulatedEngine, requests: int) -> int:
    """Run a whole session; returns the preemptions."""
    engine = config.with_bank(NoText())
    preemptions = 0

    async def episode() -> None:
        nonlocal preemptions
        control = Control(QueueLaw(q_low=50, q_high=200, max_step=0.1), AcceptAll(), 1.0)
        loop = asyncio.get_running_loop()
        async with engine.session(control) as session:
            meter = session.energy_meter()
            await meter.start()

            async def send(number: int, prompt: int, output: int) -> None:
                nonlocal preemptions
                request = Request(number, "", "", 0, 400, prompt, output)
                completion = await session.generate(request, lambda _: None)
                preemptions += completion.preemptions or 0

            async with asyncio.TaskGroup() as tasks:
                for number, (time_s, prompt, output) in enumerate(load(requests)):
                    await asyncio.sleep(max(0.0, round(time_s, 6) - loop.time()))
                    tasks.create_task(send(number, prompt, output))

    with asyncio.Runner(loop_factory=engine.loop_factory) as runner:
        runner.run(episode())
    return preemptions


def main() -> None:
    """Time everything and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--million", action="store_true")
    sizes = SIZES + ((1_000_000,) if parser.parse_args().million else ())
    plain = configured()
    starved = configured("engine.kv_blocks=4000", "engine.max_model_len=64000")
    table = Table(title="simulated requests per second of wall time", title_justify="left")
    for name in ("what", "requests", "requests/s", "x first row", "preemptions", "peak MiB"):
        table.add_column(name, justify="left" if name == "what" else "right")
    for name, config, runner in (
        ("scheduler", plain, run_scheduler),
        ("scheduler, starved", starved, run_scheduler),
        ("engine", plain, run_engine),
        ("engine, starved", starved, run_engine),
    ):
        first = 0.0
        for requests in sizes:
            start_s = time.perf_counter()
            preemptions = runner(config, requests)
            speed = requests / (time.perf_counter() - start_s)
            first = first or speed
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            table.add_row(
                name,
                f"{requests:,}",
                f"{speed:,.0f}",
                f"{speed / first:.2f}",
                f"{preemptions:,}",
                f"{memory:.0f}",
                end_section=requests == sizes[-1],
            )
    Console().print(table)


if __name__ == "__main__":
    main()

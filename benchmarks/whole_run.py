"""Simulated requests per second of processor time for a whole episode: engine, driver, application,
timeline and records on disk. How it grows with the number of requests.

    python -m benchmarks.whole_run [--sizes 1000 10000 100000]

`schedule_mib` is what the schedule takes, which is drawn before anything runs; `episode_mib` is
the most that the episode takes beyond it. Where that does not grow, memory is that of requests in
flight. Processor time, because the machine may be shared; each size has a process of its own.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
from hydra import compose, initialize_config_dir

from bellman.corpus.base import Corpus
from bellman.engines.base import Engine
from bellman.load.arrivals.base import draw_schedule
from bellman.load.rate_profile import Segment
from bellman.load.schedule import CONGESTED, Phase, Schedule
from bellman.settings import Settings, read_episode, read_settings
from experiments.cells.serve import serve
from experiments.parts import Parts
from experiments.recorder import Recorder

CONF = Path(__file__).parent.parent / "conf"
RATE_RPS = 12.0
"""Just below the simulated engine's capacity, so that the backlog does not grow with the run."""


def schedule_of(requests: int, corpus: Corpus) -> Schedule:
    """Return about `requests` Poisson arrivals at `RATE_RPS`."""
    end_s = requests / RATE_RPS
    phase = Phase(CONGESTED, 0.0, end_s, RATE_RPS)
    return draw_schedule(
        "poisson",
        1.0,
        segments=[Segment(0.0, end_s, RATE_RPS, RATE_RPS)],
        phases=[phase],
        document_ids=[document.document_id for document in corpus.documents],
        seed=1,
        repeat=0,
    )


def run_whole(
    folder: Path,
    settings: Settings,
    corpus: Corpus,
    schedule: Schedule,
    *,
    engine: Engine | None = None,
    arm: str = "bellman",
) -> None:
    """Run one episode on the configured engine, or the one given; its records go to `folder`."""
    values = settings.episode_values(arm)
    episode = read_episode(values, arm, values["arm"])
    with Parts() as parts:
        if engine is None:
            engine = parts.engine(values["engine"], values["corpus"])
        with Recorder(folder, engine.source) as recorder:
            serve(
                episode,
                schedule,
                repeat=0,
                parts=parts,
                corpus=corpus,
                engine=engine,
                recorder=recorder,
            )


class MemoryWatch:
    """The most memory that this process holds while it is watched, looked at ten times a second."""

    def __init__(self) -> None:
        self.most_mib = resident_mib()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "MemoryWatch":
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """End."""
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(0.1):
            self.most_mib = max(self.most_mib, resident_mib())


def resident_mib() -> float:
    """Return what this process holds in memory."""
    return float(psutil.Process().memory_info().rss / 2**20)


def measure(size: int) -> None:
    """Run one size and print its line."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        settings = read_settings(compose("config"))
    corpus = settings.corpus.load()
    with tempfile.TemporaryDirectory() as folder:  # imports, bank, prompts
        run_whole(Path(folder), settings, corpus, schedule_of(100, corpus))
    before_mib = resident_mib()
    schedule = schedule_of(size, corpus)
    drawn_mib = resident_mib()
    begin_s = time.process_time()
    with tempfile.TemporaryDirectory() as folder, MemoryWatch() as watch:
        run_whole(Path(folder), settings, corpus, schedule)
    taken_s = time.process_time() - begin_s
    count = len(schedule.requests)
    print(
        f"{count:8d}  {taken_s:11.2f}  {count / taken_s:14.0f}  {1e6 * taken_s / count:14.1f}"
        f"  {drawn_mib - before_mib:12.0f}  {watch.most_mib - drawn_mib:11.0f}",
        flush=True,
    )


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--alone", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.alone is not None:
        measure(given.alone)
        return
    print("requests  processor_s  requests_per_s  us_per_request  schedule_mib  episode_mib")
    for size in given.sizes:
        command = [sys.executable, "-m", "benchmarks.whole_run", "--alone", str(size)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()

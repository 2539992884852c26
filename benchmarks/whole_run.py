"""Simulated requests per second of wall-clock for a whole episode: engine, driver, application,
timeline and records on disk. How it grows with the number of requests.

    python -m benchmarks.whole_run [--most 100000]
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

from hydra import compose, initialize_config_dir

from bellman.corpus.base import Corpus
from bellman.episode import run_episode
from bellman.load.arrivals.base import draw_schedule
from bellman.load.rate_profile import Segment
from bellman.load.schedule import CONGESTED, Phase, Schedule
from bellman.settings import Settings, read_episode, read_settings
from experiments.cells.episode import meter, plan_episode
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


def time_episode(settings: Settings, corpus: Corpus, schedule: Schedule) -> float:
    """Run one episode of the controlled arm and return its wall-clock in seconds."""
    values = settings.episode_values("bellman")
    episode = read_episode(values, "bellman", values["arm"])
    with tempfile.TemporaryDirectory() as folder, Parts() as parts:
        engine = parts.engine(values["engine"], values["corpus"])
        start_s = time.perf_counter()
        with Recorder(Path(folder), engine.source) as recorder:
            parts.run_coroutine(engine)(
                run_episode(
                    engine,
                    plan_episode(episode, 0, schedule),
                    make_app=parts.app_maker(episode, corpus, engine, recorder.texts),
                    make_meter=lambda session: meter(episode, session),
                    writer=recorder.requests,
                    on_row=recorder.add_row,
                )
            )
        return time.perf_counter() - start_s


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=100_000)
    most = parser.parse_args().most
    with initialize_config_dir(str(CONF), version_base="1.3"):
        settings = read_settings(compose("config"))
    corpus = settings.corpus.load()
    print("requests  wall_s  requests_per_s  us_per_request  peak_memory_mib")
    size = 1_000
    while size <= most:
        schedule = schedule_of(size, corpus)
        wall_s = time_episode(settings, corpus, schedule)
        count = len(schedule.requests)
        peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{count:8d}  {wall_s:6.2f}  {count / wall_s:14.0f}  {1e6 * wall_s / count:14.1f}"
            f"  {peak_mib:15.0f}"
        )
        size *= 10


if __name__ == "__main__":
    main()

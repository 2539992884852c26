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
from bellman.engines.runtime import running
from bellman.episode import EpisodePlan, run_episode
from bellman.load.arrivals.base import draw_schedule
from bellman.load.rate_profile import Segment
from bellman.load.schedule import CONGESTED, Phase, Schedule
from bellman.settings import Settings, read_settings
from experiments.recorded_episode import app_maker, meter
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
    """Run one episode of the treatment arm and return its wall-clock in seconds."""
    engine = settings.engine.create(corpus)
    with tempfile.TemporaryDirectory() as folder:
        start_s = time.perf_counter()
        with Recorder(Path(folder)) as recorder, running(engine) as run_coroutine:
            plan = EpisodePlan(
                0, settings.treatment, schedule, settings.load_model, None, 1.0, 600.0
            )
            run_coroutine(
                run_episode(
                    engine,
                    plan,
                    make_app=app_maker(settings, corpus, engine, recorder.texts),
                    make_meter=lambda session: meter(settings, session),
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

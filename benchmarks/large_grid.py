"""What a grid costs by the number of its episodes: planning, running, gathering, drawing.

    python -m benchmarks.large_grid [--points 50 100 200] [--executor processes]

Every point is two arms and five repeats of tiny episodes (22 s of virtual time), so that what is
measured is the study and not the simulation. Each size has its own folder; seconds are wall-clock,
"an episode" is the time over the number of episodes: where it stays, the cost grows linearly.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hydra import compose, initialize_config_dir
from rich.console import Console
from rich.table import Table

from analysis.gather import gather
from analysis.present import present
from bellman.settings import read_settings
from experiments.execute import execute, prepare
from experiments.executors.base import Place
from experiments.messages import CONF
from experiments.run_study import run_study

ARMS, REPEATS = 2, 5
TINY = (
    "study=grid",
    f"repeats={REPEATS}",
    "arrivals.capacity_rps=13",
    "arrivals.warmup_s=2",
    "arrivals.calm_s=4",
    "arrivals.congested_s=12",
    "arrivals.recovery_s=4",
    "quality.random_draws=0",
)


def axes(points: int) -> str:
    """Return axes with that many points, each with a load of its own: nothing is shared."""
    loads = ", ".join(f"{1.1 + 0.01 * number:.2f}" for number in range(points // 2))
    return f"study.axes={{arrivals.overload: [{loads}], congestion.alpha_min: [0.25, 0.5]}}"


def seconds(work: Callable[[], object]) -> float:
    """Return how long it takes."""
    begin_s = time.perf_counter()
    work()
    return time.perf_counter() - begin_s


def measure(points: int, executor: str, folder: Path) -> list[float]:
    """Return the seconds of all of it, planning again, gathering again and showing again."""
    quiet = Console(quiet=True)
    overrides = [*TINY, axes(points), f"executor={executor}", f"folder={folder}"]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", overrides=overrides)
    run = prepare(config)

    def plan() -> None:
        """Go through the study when everything is done: all that is left is its plan."""
        settings = read_settings(config)
        run_study(settings, Place(folder, quiet, "simulated", run.parts), lambda: None)

    return [
        seconds(lambda: execute(config, quiet)),
        seconds(plan),
        seconds(lambda: gather(folder)),
        seconds(lambda: present(folder, quiet)),
    ]


def main() -> None:
    """Run grids of growing size and print what each step costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--executor", default="serial")
    given = parser.parse_args()
    table = Table(title=f"a grid by its size ({given.executor}, simulated)", title_justify="left")
    steps = ("all", "plan", "gather", "show")
    for name in ("episodes", *(f"{step} s" for step in steps), *(f"{s} ms each" for s in steps)):
        table.add_column(name, justify="right")
    for points in given.points:
        with tempfile.TemporaryDirectory() as place:
            taken_s = measure(points, given.executor, Path(place) / "run")
        episodes = points * ARMS * REPEATS
        table.add_row(
            f"{episodes:,}",
            *(f"{one_s:.1f}" for one_s in taken_s),
            *(f"{1000 * one_s / episodes:.2f}" for one_s in taken_s),
        )
    Console().print(table)


if __name__ == "__main__":
    main()

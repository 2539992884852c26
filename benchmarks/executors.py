"""The default experiment by several executors, side by side in one run: wall-clock and processor.

    python -m benchmarks.executors [--executors serial processes ray] [--overrides repeats=2 ...]

Each runs in a fresh folder by the command that a user gives, in turn. `study` is the time between
the first record of the first cell and the last record of the last one; the rest of the wall-clock
(imports, tables, figures) is the same for all. Processor time is that of the command and of all
processes that it waited for. The machine must have nothing else to do.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

RUN = Path(__file__).parent.parent / "run.py"


@dataclass(frozen=True)
class Cost:
    """What a run cost, in seconds."""

    wall_s: float
    study_s: float
    processor_s: float


def cost(executor: str, overrides: list[str]) -> Cost:
    """Run the experiment and return what it cost; raises where it fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        arguments = [f"executor={executor}", f"folder={folder}", *overrides]
        before, start_s = processor_s(), time.perf_counter()
        subprocess.run([sys.executable, RUN, *arguments], check=True, stdout=subprocess.DEVNULL)
        wall_s = time.perf_counter() - start_s
        first = min(path.stat().st_mtime for path in folder.glob("episodes/*/specification.json"))
        last = max(path.stat().st_mtime for path in folder.glob("episodes/*/episode.json"))
        return Cost(wall_s, last - first, processor_s() - before)


def processor_s() -> float:
    """Return the processor time of all children that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print a line for each executor, with its share of the first one's time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executors", nargs="+", default=["serial", "processes"])
    parser.add_argument("--overrides", nargs="+", default=[])
    arguments = parser.parse_args()
    first: Cost | None = None
    print("executor    wall_s  ratio  study_s  ratio  processor_s  ratio")
    for executor in arguments.executors:
        found = cost(executor, arguments.overrides)
        first = first or found
        print(
            f"{executor:10s}  {found.wall_s:6.1f}  {found.wall_s / first.wall_s:5.2f}"
            f"  {found.study_s:7.1f}  {found.study_s / first.study_s:5.2f}"
            f"  {found.processor_s:11.1f}  {found.processor_s / first.processor_s:5.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()

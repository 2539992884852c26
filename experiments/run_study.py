"""Runs what is missing of a study: the plan, cell by cell, and how each ended."""

import json
from collections.abc import Callable
from pathlib import Path

from bellman import interruption
from bellman.records import write_text
from bellman.redact import redact
from bellman.run_files import PLAN
from bellman.settings import Settings
from experiments.executors.base import Place
from experiments.perform import Outcome, Planned, done, planned


def run_study(
    settings: Settings, place: Place, begin: Callable[[], None]
) -> tuple[list[Outcome], bool]:
    """Run every cell of the study that is not done yet; return those that failed, and if any ran.

    `begin` is called before the first one runs.
    """
    steps = settings.study.cells(settings)
    plan: list[Planned] = []
    known: dict[str, Outcome] = {}
    ran = False

    def keep(outcome: Outcome) -> None:
        known[outcome.planned.key] = outcome

    with settings.executor.at(place) as hands:
        batch = next(steps)
        while True:
            interruption.check()
            plans = [planned(cell) for cell in batch]
            plan += plans
            missing = {}
            for one in plans:
                if one.key not in known:
                    earlier = done(one, place.folder)
                    if earlier is None:
                        missing[one.key] = one
                    else:
                        keep(earlier)
            if missing:
                if not ran:
                    begin()
                ran = True
                write_plan(plan, place.folder)
                hands.run(list(missing.values()), keep)
            try:
                batch = steps.send([known[one.key] for one in plans])
            except StopIteration:
                break
    write_plan(plan, place.folder)
    return [outcome for outcome in known.values() if outcome.content is None], ran


def write_plan(plan: list[Planned], folder: Path) -> None:
    """Write the plan so far, one line a cell.

    Not before a cell is missing: a run that goes through what is done already keeps its old plan.
    """
    lines = [
        json.dumps(
            redact(
                {
                    "id": one.key,
                    "kind": type(one.cell).__name__,
                    "label": one.cell.label,
                    "axes": dict(one.cell.axes),
                }
            )
        )
        for one in plan
    ]
    write_text("".join(f"{line}\n" for line in lines), folder / PLAN)

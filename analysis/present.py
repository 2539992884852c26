"""What a study shows, made from its records: `python -m analysis.present FOLDER... [--explain]`.

Gathers the frames and makes everything that comes from them, by the kind of study; of a killed run
everything that it can still show. With `--explain` the definitions of the claims follow.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from analysis import read
from analysis.capacity.present import capacity
from analysis.claims_map.present import claims_map
from analysis.explain import explain
from analysis.fluid.present import fluid
from analysis.frames import load_run
from analysis.gather import gather
from analysis.grid.present import grid
from analysis.kick_the_tires.present import kick_the_tires
from analysis.made import note_made
from analysis.ranking.present import arms
from analysis.replay.present import replay
from analysis.scores import score
from analysis.sensitivity.present import sensitivity
from analysis.summarize import summarize
from analysis.tables import print_tables
from analysis.uncertainty.present import tornado
from analysis.validation.present import validation
from bellman.errors import ConfigError, RunError
from bellman.records import write_json
from bellman.run_folder import (
    DONE,
    FAILED,
    INTERRUPTED,
    RECORDED,
    RUNNING,
    STATUS,
    read_status,
    writing_into,
)

EXPLAIN = "--explain"
Presenter = Callable[..., None]
Step = Callable[[Path], None]
FRAMES: Sequence[Step] = (gather,)
SCORED: Sequence[Step] = (gather, score)


def comparison(folder: Path, console: Console, *, make: bool, draw: bool) -> None:
    """Print the tables of a comparison; with `make`, first make everything they come from."""
    if make:
        run = load_run(folder)
        summarize(run)
    if make and draw:
        # Imported here: a run that is only shown again does not wait for the drawing library.
        from analysis.figures import draw as draw_figures  # noqa: PLC0415
        from analysis.report import write  # noqa: PLC0415

        if len(run.requests):
            draw_figures(run)
        write(folder)
    print_tables(folder, console)


PRESENTERS: dict[str, tuple[Sequence[Step], Presenter]] = {
    "Arms": (SCORED, arms),
    "Capacity": (FRAMES, capacity),
    "ClaimsMap": (FRAMES, claims_map),
    "Fluid": (FRAMES, fluid),
    "Grid": (SCORED, grid),
    "KickTheTires": (SCORED, kick_the_tires),
    "Paired": (SCORED, comparison),
    "Replay": (FRAMES, replay),
    "Sensitivity": (FRAMES, sensitivity),
    "Uncertainty": (SCORED, tornado),
    "Validation": ((), validation),
}
"""By the class of the study that made the folder: what is made first, and what shows it."""


def presenter_of(study: object) -> tuple[Sequence[Step], Presenter]:
    """Return how a study is shown; raises `RunError` for one that is not known."""
    if study not in PRESENTERS:
        known = ", ".join(PRESENTERS)
        raise RunError(f"study {study!r} is not one of {known}")
    return PRESENTERS[str(study)]


def is_scored(study: str) -> bool:
    """Whether the answers of a study are scored; raises `RunError` for one that is not known."""
    return score in presenter_of(study)[0]


def present(folder: Path, console: Console, *, make: bool = True, draw: bool = True) -> None:
    """Show a run folder; with `make` everything is made again from its records, figures by `draw`.

    Raises `RunError` where the folder holds no run, or one whose records cannot be read.
    """
    steps, presenter = presenter_of(read.json_file(folder / "study.json", {}).get("study"))
    if make:
        for step in steps:
            step(folder)
    status = read_status(folder)
    if status is not None and status["status"] == FAILED:
        console.print(f"failed run: {status['reason']}", style="bold red", markup=False)
    presenter(folder, console, make=make, draw=draw)
    if make and draw:
        note_made(folder)


def present_again(folder: Path, console: Console) -> None:
    """Make and show everything of a folder that no process writes into; its status follows.

    A run that was killed is `interrupted`; one that only lacked this is `done`.
    """
    with writing_into(folder):
        status = read_status(folder)
        if status is not None and status["status"] == RUNNING:
            write_json(status | {"status": INTERRUPTED}, folder / STATUS)
        present(folder, console)
        if status is not None and status["status"] == RECORDED:
            write_json(status | {"status": DONE, "reason": None}, folder / STATUS)


def main(arguments: list[str]) -> int:
    """Make everything again from the records of the folders given, and show it."""
    folders = [argument for argument in arguments if argument != EXPLAIN]
    if not folders or any(folder.startswith("-") for folder in folders):
        print(f"usage: python -m analysis.present FOLDER... [{EXPLAIN}]", file=sys.stderr)
        return 2
    try:
        for folder in folders:
            present_again(Path(folder), Console())
            if EXPLAIN in arguments:
                explain(Path(folder), Console())
    except (RunError, ConfigError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

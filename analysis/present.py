"""What a finished experiment shows, from its folder: scores, claims, figures, the report.

`python -m analysis.present FOLDER` makes all of it from the records, as the run would have done.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

from hydra.utils import get_method
from rich.console import Console

from analysis import read
from analysis.score import score
from analysis.summarize import summarize
from analysis.tables import print_tables
from bellman.build import find_target
from bellman.errors import ConfigError, RunError
from bellman.records import write_json
from bellman.run_folder import DONE, RECORDED, STATUS, writing_into


def comparison(folder: Path, console: Console, *, draw: bool) -> None:
    """Print the tables of a `compare` run; with `draw`, first make everything they come from."""
    if draw:
        # Imported here: a run that is only shown again does not wait for the drawing library.
        from analysis.figures import draw as draw_figures  # noqa: PLC0415
        from analysis.report import write  # noqa: PLC0415

        summarize(folder)
        draw_figures(folder)
        write(folder)
    print_tables(folder, console)


def numbers(folder: Path, console: Console, *, draw: bool) -> None:
    """Print the tables of a `compare` run without drawing anything."""
    if draw:
        summarize(folder)
    print_tables(folder, console)


SCORED = (comparison, numbers)
NOT_DRAWN = (numbers,)
"""What presentations need: the answers' scores, and figures."""


def present(folder: Path, console: Console) -> None:
    """Make everything that comes from the records of a run that is whole; then it is done.

    Raises `RunError` where it is not whole, or another process writes there.
    """
    with writing_into(folder):
        status = read.json_file(folder / STATUS, {})
        if status.get("status") not in {RECORDED, DONE}:
            raise RunError(
                f"{folder} lacks records (status {status.get('status')}): "
                f"python -m analysis.rebuild {folder} shows what there is"
            )
        presentation = named_presentation(read.config(folder / "config.yaml").get("presentation"))
        if presentation in SCORED:
            score(folder)
        presentation(folder, console, draw=True)
        write_json(status | {"status": DONE, "reason": None}, folder / STATUS)


def named_presentation(name: object) -> Callable[..., None]:
    """Return the presentation that a folder names; of any origin, it may name no other function."""
    module = str(name).rpartition(".")[0]
    if not re.fullmatch(r"analysis(\.[a-z]\w*)*\.present", module):
        raise ConfigError("presentation", name, "must be in a module analysis.<...>.present")
    found: Callable[..., None] = find_target(name, "presentation", get_method)
    if found.__module__ != module:
        raise ConfigError("presentation", name, f"is no function of {module} itself")
    return found


def main(arguments: list[str]) -> int:
    """Present one run folder."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m analysis.present FOLDER", file=sys.stderr)
        return 2
    try:
        present(Path(arguments[0]), Console())
    except (RunError, ConfigError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

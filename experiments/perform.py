"""Runs one cell into its folder: begun, and done when its last file is there."""

import json
import shutil
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bellman.engines.base import EngineDied
from bellman.errors import ConfigError, RunError
from bellman.records import write_json, write_text
from bellman.redact import conceal, learn
from bellman.run_files import DONE, EPISODES
from experiments.cells.base import Cell, Watch, cell_key
from experiments.parts import EngineNotStarted, Parts

SPECIFICATION = "specification.json"
ERROR = "error.txt"


@dataclass(frozen=True)
class Planned:
    """A cell and its key."""

    cell: Cell
    key: str

    def folder(self, run_folder: Path) -> Path:
        """Return where its records are, or will be."""
        return run_folder / EPISODES / self.key


@dataclass(frozen=True)
class Outcome:
    """What became of a cell: what its last file says, or why there is none."""

    planned: Planned
    folder: Path
    content: dict[str, Any] | None
    error: str | None = None


def planned(cell: Cell) -> Planned:
    """Return the cell with its key."""
    return Planned(cell, cell_key(cell))


def done(plan: Planned, run_folder: Path) -> Outcome | None:
    """Return the outcome of a cell that was done before, or None; raises `RunError`."""
    folder = plan.folder(run_folder)
    file = folder / DONE
    if not file.exists():
        return None
    try:
        content = json.loads(file.read_text())
        if not isinstance(content, dict) or not content:
            raise ValueError("it says nothing")
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(
            f"{file} cannot be read ({error}): remove it to run that episode again"
        ) from None
    return Outcome(plan, folder, content)


def perform(plan: Planned, run_folder: Path, parts: Parts, watch: Watch) -> Outcome:
    """Run a cell into its folder and return its outcome; what fails is told, not raised.

    What an earlier, unfinished try recorded is moved aside. Raises for what concerns every cell: an
    interruption, a full disk.
    """
    folder = plan.folder(run_folder)
    make_room(folder, plan.cell.source == "measured")
    folder.mkdir(parents=True)
    cell = plan.cell
    learn(cell.specification())
    write_json(
        {"kind": type(cell).__name__, "axes": dict(cell.axes), **cell.specification()},
        folder / SPECIFICATION,
    )
    try:
        content = {"kind": type(cell).__name__, **cell.run(folder, parts, watch)}
    except EngineNotStarted:
        raise  # there is none for the other cells either
    except (RunError, ConfigError, EngineDied) as failure:
        if isinstance(failure, EngineDied):
            parts.stop()  # the next cell gets a server that is started anew
        return failed(plan, folder, str(failure))
    except OSError:
        raise
    except Exception as failure:
        write_text(conceal(traceback.format_exc()), folder / ERROR)
        return failed(plan, folder, f"{type(failure).__name__}: {failure} ({folder / ERROR})")
    write_json(content, folder / DONE)
    return Outcome(plan, folder, content)


def failed(plan: Planned, folder: Path, error: str) -> Outcome:
    """Return the outcome of a cell without an end."""
    return Outcome(plan, folder, None, error)


def make_room(folder: Path, keep: bool) -> None:
    """Move what an unfinished try left aside; a simulated one, which comes out the same, goes."""
    if not folder.exists():
        return
    if not keep:
        shutil.rmtree(folder)
        return
    number = 1
    while (aside := folder.with_name(f"{folder.name}.unfinished-{number}")).exists():
        number += 1
    folder.rename(aside)

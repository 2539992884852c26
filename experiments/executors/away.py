"""A cell that runs on another machine, which shares no files with the one that asked for it."""

import os
import socket
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bellman import provenance
from bellman.errors import RunError
from experiments.cells.inputs import input_digests
from experiments.executors.worker import run_cell
from experiments.perform import Planned


@dataclass(frozen=True)
class Delivered:
    """What became of a cell, with all its files."""

    content: dict[str, Any] | None
    error: str | None
    files: dict[str, bytes]
    """By their paths in the run's folder."""
    said: list[str] = field(default_factory=list)
    """What a user should read."""


def run_away(plan: Planned, digests: dict[str, str], directory: str, run_folder: str) -> Delivered:
    """Run a cell on this node and return its files.

    `digests` are those of the input files that the cell's key was made with, `directory` is where
    relative paths started there. Raises `RunError` for what concerns every cell (a full disk).
    """
    node = socket.gethostname()
    if Path(directory).is_dir():
        os.chdir(directory)
    if (file := differing_file(plan, digests)) is not None:
        missing = f"{file} is not on node {node} as it is where the run was started: copy it there"
        return Delivered(None, missing, {})
    # Inside the copy of the code, which Ray removes also where this process is killed.
    with TemporaryDirectory(prefix="cell-", dir=provenance.ROOT) as name:
        try:
            outcome, said = run_cell(plan, Path(name))
        except OSError as failure:
            raise RunError(f"node {node}: {failure}") from None
        files = {
            path.relative_to(name).as_posix(): path.read_bytes()
            for path in sorted(Path(name).rglob("*"))
            if path.is_file()
        }
        error = outcome.error and f"node {node}: {outcome.error.replace(name, run_folder)}"
        return Delivered(outcome.content, error, files, said)


def differing_file(plan: Planned, digests: dict[str, str]) -> str | None:
    """Return the first input file that is another one here than the key was made with."""
    here = input_digests(plan.cell.specification())
    different = {path for path, _ in digests.items() ^ here.items()}
    return min(different, default=None)

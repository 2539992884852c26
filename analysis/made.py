"""What was made from which records by which analysis: when to make it again."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from analysis import read
from analysis.plan import read_plan
from bellman.records import write_json
from bellman.run_files import DONE

MADE = "made.json"
ROOT = Path(__file__).parent


@cache
def analysis_digest() -> str:
    """Return a SHA-256 over the names and contents of the analysis."""
    digest = hashlib.sha256()
    for path in sorted(ROOT.rglob("*")):
        if path.suffix in {".py", ".html", ".css", ".js"}:
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def records_digest(folder: Path) -> str:
    """Return a SHA-256 over the plan and over which of its cells are done."""
    digest = hashlib.sha256()
    for cell in read_plan(folder):
        done = (cell.folder / DONE).exists()
        digest.update(f"{cell.key} {cell.label} {cell.axes} {done}\n".encode())
    return digest.hexdigest()


def origin(folder: Path) -> dict[str, Any]:
    """Return what the claims of a folder would be made from now."""
    return {"analysis": analysis_digest(), "records": records_digest(folder)}


def is_made(folder: Path) -> bool:
    """Whether everything is made, from the records that are there and by this analysis."""
    return bool(read.json_file(folder / MADE, None) == origin(folder))


def note_made(folder: Path) -> None:
    """Say that everything has been made."""
    write_json(origin(folder), folder / MADE)

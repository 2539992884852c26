"""What can fail after the last episode is tried before the first: room, scoring, drawing."""

import shutil
from pathlib import Path

from analysis import figures, present, report
from bellman.errors import RunError

ROOM_BYTES = 64 * 1024**2
"""Less than this does not hold the records of the smallest real run (ours)."""


def check_room(path: Path) -> None:
    """Raise `RunError` where the disk of a folder, which need not exist, is as good as full."""
    there = next(
        parent for parent in (path.absolute(), *path.absolute().parents) if parent.exists()
    )
    free_bytes = shutil.disk_usage(there).free
    if free_bytes < ROOM_BYTES:
        raise RunError(
            f"only {free_bytes / 1024**2:.1f} MiB are free where {path} would be, "
            f"{ROOM_BYTES / 1024**2:.0f} are needed: free some, or choose another `outputs`"
        )


def check_end(study: str, *, draw: bool) -> None:
    """Raise `RunError` where what a study would record could not be scored or drawn."""
    for what, needed, attempt in (
        ("scored", present.is_scored(study), try_scoring),
        ("drawn", draw, try_drawing),
    ):
        if not needed:
            continue
        try:
            attempt()
        except Exception as error:  # whatever it is now it would be at the end
            reason = next(iter(str(error).splitlines()), "")
            raise RunError(
                f"nothing was run, since its results could not be {what}: "
                f"{type(error).__name__}: {reason}"
            ) from error


def try_scoring() -> None:
    """Load the metric, which writes into the cache of `evaluate`, and score a word."""
    from bellman.quality.score import rouge  # noqa: PLC0415 - seconds to import

    rouge(["word"], ["word"], use_stemmer=True)


def try_drawing() -> None:
    """Draw a figure, and load the report's template."""
    figures.try_drawing()
    report.template()

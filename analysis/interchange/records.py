"""What the formats share: request records as rows, and where an episode's rows come from."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from analysis import read
from bellman.errors import RunError
from bellman.load.schedule import CONGESTED
from bellman.records import RequestRecord, Status

Row = dict[str, Any]
"""One request, with the columns of `bellman.records.REQUESTS`; unknown is None."""
OTHER_SHAPES = (
    *(ValueError, KeyError, IndexError, TypeError),
    *(AttributeError, OverflowError, RecursionError),
)
"""What values of other kinds than a tool writes raise where they are taken for these."""
TOO_MANY_REQUESTS = 429
SIMULATED_WORKER = "bellman (simulated)"
"""Keeps a simulated run from coming back as a measured one."""


def row(arm: str, request_id: int, status: Status, reason: str | None, **known: Any) -> Row:
    """Return the row of a request of another tool: measured, and what is not known is None."""
    record = RequestRecord(
        repeat=0,
        arm=arm,
        request_id=request_id,
        document_id=known.pop("document_id", ""),
        phase=known.pop("phase", CONGESTED),
        intended_s=known.pop("intended_s"),
        source=known.pop("source", "measured"),
        status=status,
        reason=reason,
    )
    return asdict(record) | known


def episodes(folder: Path) -> Iterator[tuple[str, int, list[Row]]]:
    """Yield (arm, repeat, rows) of a run folder; raises `RunError` when it has no records."""
    path = folder / "requests.parquet"
    if not path.exists():
        raise RunError(f"{folder}: no requests.parquet, give the folder of a finished run")
    frame = read.parquet(path).to_pandas(types_mapper=pd.ArrowDtype).astype(object)
    frame = frame.where(frame.notna(), None)
    for key, part in frame.groupby(["arm", "repeat"], sort=False):
        arm, repeat = key
        rows = part.sort_values("request_id").to_dict("records")
        yield str(arm), int(str(repeat)), [{str(k): v for k, v in entry.items()} for entry in rows]


def gaps_s(request: Row) -> list[float]:
    """Return the gaps between the chunks of a request's stream; empty where none are recorded."""
    recorded = request.get("chunk_gaps_s")
    return [] if recorded is None else [float(gap_s) for gap_s in recorded]


def texts(folder: Path) -> dict[str, str]:
    """Return the answers of a run folder by their id; empty when it has none."""
    path = folder / "texts.parquet"
    if not path.exists():
        return {}
    frame = read.frame(path)
    return dict(zip(frame["text_id"], frame["text"], strict=True))

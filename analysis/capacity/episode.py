"""The records of one point's episode, and what they measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from analysis import read
from analysis.capacity.points import ClosedPoint, OpenPoint, Window, closed_point, open_point
from analysis.frames import derive
from bellman.load.schedule import CONGESTED
from bellman.records import REQUESTS, TIMELINE, read_json_lines
from bellman.slo import Slo


@dataclass(frozen=True)
class PointRecords:
    """One episode: its requests and its samples, and the window that counts."""

    requests: pd.DataFrame
    timeline: pd.DataFrame
    window: Window
    invalid_reasons: tuple[str, ...]

    def closed(self, arm: str, clients: int) -> ClosedPoint:
        """Measure it as a closed loop of some clients."""
        return closed_point(
            arm,
            clients,
            requests=self.requests,
            timeline=self.timeline,
            window=self.window,
            invalid_reasons=self.invalid_reasons,
        )

    def open(self, arm: str, rate_rps: float, slo: Slo) -> OpenPoint:
        """Measure it as arrivals at a rate, judged by an SLO."""
        return open_point(
            arm,
            rate_rps,
            requests=self.requests,
            window=self.window,
            slo=slo,
            invalid_reasons=self.invalid_reasons,
        )


def point_records(
    content: Mapping[str, Any], requests: pd.DataFrame, timeline: pd.DataFrame
) -> PointRecords:
    """Return the records of an episode that `content`, its last file, describes."""
    counted = next(phase for phase in content["phases"] if phase["name"] == CONGESTED)
    window = float(counted["start_s"]), float(counted["end_s"])
    return PointRecords(requests, timeline, window, tuple(content["invalid_reasons"]))


def read_point(folder: Path, content: Mapping[str, Any]) -> PointRecords:
    """Read an episode's folder; raises `RunError` where it cannot be read."""
    requests, timeline = (
        _frame(folder / f"{name}.jsonl", schema)
        for name, schema in (("requests", REQUESTS), ("timeline", TIMELINE))
    )
    return point_records(content, derive(requests), timeline)


def _frame(file: Path, schema: pa.Schema) -> pd.DataFrame:
    try:
        frame: pd.DataFrame = read_json_lines(file, schema).to_pandas()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise read.unreadable(file, error) from None
    return frame

"""Reads a gathered frame one point of its study at a time."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from analysis import read
from analysis.gather import POINTS


class RowGroups:
    """A frame whose row groups are episodes at points; its metadata is read once."""

    def __init__(self, path: Path) -> None:
        self._file = read.parquet_file(path)
        self._groups: dict[str, list[int]] = {}
        metadata = self._file.metadata.metadata or {}
        for number, axes in enumerate(json.loads(metadata.get(POINTS.encode(), b"[]"))):
            self._groups.setdefault(point_key(axes), []).append(number)

    def at(self, point: Mapping[str, Any] | None) -> pd.DataFrame:
        """Return the rows at a point, or all of them."""
        if point is None:
            table = self._file.read()
        else:
            table = self._file.read_row_groups(self._groups.get(point_key(point), []))
        frame: pd.DataFrame = table.to_pandas()
        return frame


def point_key(axes: Mapping[str, Any]) -> str:
    """Return a point as a key: the values of its axes."""
    return json.dumps(dict(axes), sort_keys=True)

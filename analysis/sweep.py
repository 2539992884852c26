"""Placeholder."""

from typing import Any


def write_sweep(*a: Any) -> None: ...

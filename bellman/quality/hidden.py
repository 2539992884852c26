"""Imports of a package without those of others that it tries and can do without."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hidden(*packages: str) -> Iterator[None]:
    """Let no import in the block find the packages, but for those that are imported already."""
    absent = [package for package in packages if package not in sys.modules]
    for package in absent:
        sys.modules[package] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        for package in absent:
            del sys.modules[package]

"""Imports that are kept from dragging others in."""

import importlib
import sys

import pytest

from bellman.quality.hidden import hidden


def test_is_found_before_and_after_but_not_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    with hidden("colorsys"), pytest.raises(ImportError):
        importlib.import_module("colorsys")
    assert importlib.import_module("colorsys") is sys.modules["colorsys"]


def test_what_is_imported_already_stays() -> None:
    with hidden("json", "no.such.package"):
        assert importlib.import_module("json").loads("1") == 1
    assert "no.such.package" not in sys.modules

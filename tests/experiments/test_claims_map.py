"""The claims map's points: small grids around the configuration, each comparison once."""

import json

import pytest
from omegaconf import OmegaConf
from rich.console import Console

from analysis.present import present
from bellman.errors import ConfigError
from experiments.execute import execute
from experiments.studies.claims_map import ClaimsMap
from experiments.studies.small_grids import points_of
from tests.experiments.conftest import TINY, read_config


def test_a_point_that_two_grids_share_is_one():
    grids = {"one": {"a": [1, 2], "b": [3]}, "two": {"a": [2, 4], "b": [3]}}
    axes = [dict(point.axes) for point in points_of(grids)]
    assert axes == [{}, {"a": 1, "b": 3}, {"a": 2, "b": 3}, {"a": 4, "b": 3}]


@pytest.mark.parametrize(
    ("grids", "message"),
    [
        ({}, "grids="),
        ({"x": {"a": [1]}}, "must be one or two axes of several values"),
        ({"x": {"a": [1, 2], "b": [1, 2], "c": [1, 2]}}, "one or two axes"),
        ({"x": {"a": [1, 1]}}, "must be different values"),
    ],
)
def test_grids_that_are_no_maps_are_refused(grids, message):
    with pytest.raises(ConfigError, match=message):
        ClaimsMap(grids)


def test_a_small_map_has_the_default_and_every_point_of_its_grids(tmp_path):
    tiny = (entry for entry in TINY if "repeats" not in entry)
    config = read_config(
        "experiment=claims_map", "executor=serial", "repeats=1", *tiny, f"folder={tmp_path / 'map'}"
    )
    config.study.grids = OmegaConf.create({"load": {"arrivals.overload": [1.5, 3.0]}})
    folder = execute(config, Console(quiet=True), draw=False)
    found = json.loads((folder / "claims_map.json").read_text())
    axes = [point["axes"] for point in found["points"]]
    assert axes == [{}, {"arrivals.overload": 1.5}, {"arrivals.overload": 3.0}]
    assert found["source"] == "simulated"
    served = [
        next(r for r in point["readings"] if r["reading"] == "requests served")
        for point in found["points"]
    ]
    assert all(reading["estimate"] is not None for reading in served)
    assert not any(reading["holds"] for reading in served)  # one repeat gives no verdict
    console = Console(record=True, width=120)
    present(folder, console, make=False)
    text = console.export_text()
    assert (folder / "why.txt").read_text().strip()[:20] in text
    assert found["prefix_caching"] == "off"
    assert {point["prefix_caching"] for point in found["points"]} == {"off"}
    assert text.startswith("prefix caching off\n")

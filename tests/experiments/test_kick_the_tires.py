"""The check of the installation: names each part that works or does not, and gives no result."""

import json

import pytest
from rich.console import Console

from analysis.frames import load_run
from analysis.kick_the_tires.checks import checks
from analysis.present import present
from experiments.execute import execute
from tests.experiments.conftest import TINY, read_config


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "tires"
    # Twice the capacity of 4 a second: the queue law must speak within ten seconds.
    config = read_config(
        "experiment=kick_the_tires",
        "executor=serial",
        *(entry for entry in TINY if "repeats" not in entry),
        "arrivals.overload=2",
        "arm=[none,bellman]",
        "congestion.q_low=2",
        "congestion.q_high=20",
        f"folder={folder}",
    )
    return execute(config, Console(quiet=True), draw=False)


def test_every_part_but_the_figures_that_were_not_drawn_works(folder):
    works = {check.part: check.works for check in checks(folder)}
    assert works.pop("figures and report") is False
    assert works
    assert all(works.values()), works


def test_no_number_of_it_is_a_result(folder):
    claims = json.loads((folder / "claims.json").read_text())["claims"]
    assert {claim["verdict"] for claim in claims} == {"not measured"}
    reason = "a check of the installation, too short for results"
    assert all(reason in claim["reason"] for claim in claims)
    assert reason in load_run(folder).invalid_text
    console = Console(record=True, width=200)
    present(folder, console, make=False)
    text = console.export_text()
    assert "are no results" in text
    assert "does not work: figures and report." in text
    assert "8x" not in text


@pytest.mark.parametrize(
    ("file", "content", "part"),
    [
        ("energy.json", "{}", "energy meter"),
        ("episodes.json", "[]", "congestion signal"),
        ("claims.json", "{}", "claims"),
    ],
)
def test_a_part_that_left_nothing_does_not_work(folder, file, content, part):
    path = folder / file
    kept = path.read_text()
    try:
        path.write_text(content)
        found = {check.part: check for check in checks(folder)}
    finally:
        path.write_text(kept)
    assert not found[part].works

"""Arms that refuse, retry and route in one run: every table says what became of the requests."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from analysis import rows
from analysis.ranking.results import ranking
from analysis.sweep import combine, write_csv
from analysis.tables import print_tables
from experiments.execute import execute
from tests.experiments.conftest import TINY, read_config

ARMS = ("none", "queue_limit", "tpm_retry", "spillover")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    overrides = [
        *TINY,
        f"outputs={tmp_path_factory.mktemp('outputs')}",
        f"arm=[{','.join(ARMS)}]",
        *("arrivals.capacity_rps=13", "arrivals.overload=2", "request_timeout_s=100"),
        *("arms.queue_limit.admission.limit=60", "arms.spillover.admission.limit=100"),
        "arms.tpm_retry.admission.tokens=300000",
    ]
    return execute(read_config(*overrides), Console(quiet=True), draw=False)


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def test_each_arm_accounts_for_every_request(folder: Path) -> None:
    arms = read(folder, "summary.json")["arms"]
    offered = {arm["offered"] for arm in arms.values()}
    assert len(offered) == 1
    for arm in arms.values():
        assert arm["offered"] == arm["admitted"] + arm["rejected"]
        assert arm["completed"] <= arm["admitted"]
        assert arm["completed"] == arm["statuses"]["ok"]
    assert arms["queue_limit"]["rejected"] > 0 == arms["queue_limit"]["retried"]
    assert arms["tpm_retry"]["retried"] > 0
    assert arms["spillover"]["retried"] > 0 == arms["spillover"]["rejected"]
    assert (arms["queue_limit"]["e2e_all_mean_s"], arms["queue_limit"]["e2e_p99_s"]) == (
        "inf",
        "inf",
    )
    assert arms["queue_limit"]["e2e_ok_p99_s"] < arms["none"]["e2e_ok_p99_s"]
    assert arms["none"]["e2e_all_mean_s"] == arms["none"]["e2e_mean_s"]


def test_a_spare_is_paid_for_by_the_arm_that_has_it(folder: Path) -> None:
    arms = read(folder, "summary.json")["arms"]
    assert {name for name, arm in arms.items() if arm["replicas"]} == {"spillover"}
    parts = arms["spillover"]["replicas"]
    total_j = sum(part["energy_j"] for part in parts.values())
    assert arms["spillover"]["energy_j"] == pytest.approx(total_j)
    assert sum(part["completed"] for part in parts.values()) == arms["spillover"]["completed"]
    windows = pd.DataFrame(read(folder, "energy.json")["windows"]).set_index(["arm", "window"])
    for _, window in windows.loc["spillover"].iterrows():
        assert window.energy_j == pytest.approx(sum(window.replicas_j.values()))
        length_s = window.end_s - window.start_s
        assert window.replicas_j["spare"] >= 74.9 * length_s  # watts, idle
    assert windows.loc["none"].replicas_j.isna().all()
    claims = read(folder, "claims.json")["claims"]
    said = "spillover's joules are those of 2 engines (first, spare), idle ones too"
    told = {one["treatment"] for one in claims if said in one["caveats"]}
    assert told == {"spillover"}
    notes = rows.arm_notes(read(folder, "summary.json"))
    assert any("spillover: energy of 2 engines, idle too: first answered" in note for note in notes)
    assert "the other arms have one engine, and pay for no spare" in notes


def test_attempts_are_a_frame_of_the_arms_that_have_them(folder: Path) -> None:
    requests = pd.read_parquet(folder / "requests.parquet").set_index(["arm", "request_id"])
    attempts = pd.read_parquet(folder / "attempts.parquet")
    assert set(attempts.arm) == {"tpm_retry", "spillover"}
    counted = attempts.groupby(["arm", "request_id"]).size()
    told = requests.attempts.dropna()
    assert (told.loc[counted.index] == counted).all() and len(told) == len(counted)
    assert (counted >= 1).all() and counted.sum() > len(counted)
    replicas = pd.read_parquet(folder / "replicas.parquet")
    assert set(replicas.arm) == {"spillover"} and set(replicas.replica) == {"first", "spare"}


def test_every_table_of_arms_says_it(folder: Path, tmp_path: Path) -> None:
    summary = read(folder, "summary.json")
    header, *body = rows.arm_table(summary)
    start = header.index("offered")
    assert tuple(header[start : start + 5]) == rows.FLOW
    shown = {row[0]: row[start : start + 5] for row in body}
    for arm, values in summary["arms"].items():
        assert shown[arm] == [f"{values[name]:,}" for name in rows.FLOW]
    for row in rows.phase_rows(summary):
        assert len(row) == len(rows.PHASE_HEADER)
    assert set(rows.FLOW) <= set(rows.PHASE_HEADER)

    console = Console(width=80, record=True, file=io.StringIO())
    print_tables(folder, console)
    text = console.export_text()
    lines = [line.split() for line in text.splitlines()]
    table = next(number for number, line in enumerate(lines) if line[:2] == ["arm", "offered"])
    assert lines[table] == ["arm", *rows.FLOW, "SLO"]
    assert max(len(line) for line in text.splitlines() if str(folder) not in line) <= 80

    write_csv(combine([folder], [{}]), tmp_path / "table.csv")
    with (tmp_path / "table.csv").open() as file:
        by_arm = {row["treatment"]: row for row in csv.DictReader(file)}
    for arm in ARMS[1:]:
        values = summary["arms"][arm]
        assert [by_arm[arm][name] for name in rows.FLOW] == [
            str(values[name]) for name in rows.FLOW
        ]
    assert by_arm["queue_limit"]["e2e_all_mean_s"] == "inf"

    for one in ranking(summary):
        assert [one[name] for name in rows.FLOW] == [
            summary["arms"][one["arm"]][name] for name in rows.FLOW
        ]

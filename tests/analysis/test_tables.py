import csv
import io
import json

import pytest
from rich.console import Console

from analysis import report, rows, sweep
from analysis.explain import explain
from analysis.frames import load_run
from analysis.summarize import summarize
from analysis.tables import print_tables
from tests.analysis.synthetic_run import Synthetic, write_run


@pytest.fixture(scope="module")
def summarized(tmp_path_factory):
    folder = write_run(tmp_path_factory.mktemp("tables") / "run")
    summarize(load_run(folder))
    return folder


def printed(folder, width: int = 120) -> str:
    if not (folder / "summary.json").exists():
        summarize(load_run(folder))
    console = Console(file=io.StringIO(), width=width)
    print_tables(folder, console)
    return console.file.getvalue()


def test_the_tables_say_all_that_a_run_must_say(summarized):
    text = printed(summarized)
    for words in (
        "up to 8x",
        "25 % less",
        "19 % more",
        "9.58x",
        "[9.36, 9.81]",
        "reproduced",
        "partly",
        "simulated",
        "offered",
        "completed",
        "SLO: share of requests with ttft 2 s",
        "GPU energy",
        "ROUGE-1 F1",
        "answers: extractive stand-in",
        "words",
        "100 s above capacity",
    ):
        assert words in text, words
    assert str(summarized) in text


@pytest.mark.parametrize("width", [80, 100, 160])
def test_no_table_is_wider_than_the_terminal(summarized, width):
    lines = printed(summarized, width).splitlines()
    assert max(len(line) for line in lines if str(summarized) not in line) <= width


def test_a_claim_is_one_line_and_its_definition_is_elsewhere(summarized):
    """80 columns, the widest estimates."""
    lines = printed(summarized, 80).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("claim "))
    table = lines[first + 2 : first + 8]
    names = ["end-to-end latency", "energy, window", "per request", "whole episode", "own period"]
    for name, line in zip([*names, "requests served"], table, strict=True):
        assert line.strip().startswith(name) and "[" in line
        assert any(line.rstrip().endswith(word) for word in ("reproduced", "partly"))
    claims = json.loads((summarized / "claims.json").read_text())["claims"]
    text = " ".join(" ".join(lines).split())
    for claim in claims:
        assert claim["definition"] not in text
    assert f"python -m analysis.present {summarized} --explain" in text


def test_explained_is_every_number_with_its_definition(summarized):
    console = Console(file=io.StringIO(), width=80)
    explain(summarized, console)
    text = " ".join(console.file.getvalue().split())
    for claim in json.loads((summarized / "claims.json").read_text())["claims"]:
        for entry in (claim, *claim["companions"]):
            for words in (entry["definition"], entry["sensitive_to"], rows.estimate(entry)):
                assert words in text, words
            assert entry["sensitive_to"] or entry["verdict"] is None or entry is claim
            for note in (entry["reason"], *entry["caveats"]):
                assert note in text


def test_a_folder_without_claims_has_none_to_explain(tmp_path):
    console = Console(file=io.StringIO(), width=80)
    explain(tmp_path, console)
    assert "no claims to explain" in console.file.getvalue()


@pytest.mark.parametrize(
    ("outcomes", "line"),
    [
        ([True, False], "by reading of the energy: a; not by: b"),
        ([False, False], "by reading of the energy: no reading; not by: a, b"),
        ([True, None], "by reading of the energy: a; not measured: b"),
    ],
)
def test_the_line_of_the_readings_that_hold_all_three(outcomes, line):
    together = [
        {"treatment": "bellman", "reading": name, "reproduced": outcome}
        for name, outcome in zip("ab", outcomes, strict=True)
    ]
    (found,) = rows.at_once(together)
    assert found == f"all three claims reproduced at once, {line}"


def test_not_measured_is_never_zero(tmp_path):
    text = printed(
        write_run(tmp_path / "run", Synthetic(repeats=1, energy_source=None, quality=False))
    )
    lines = text.splitlines()
    header = next(number for number, line in enumerate(lines) if "GPU energy" in line)
    for row in lines[header + 2 : header + 4]:
        assert row.split()[:4] == [row.split()[0], "n/a", "n/a", "n/a"]
    assert "no meter found" in text


def test_an_invalid_run_says_so_first(tmp_path):
    text = printed(
        write_run(tmp_path / "run", Synthetic(repeats=1, invalid_reasons=("lag p99 of 80 ms",)))
    )
    assert text.startswith("invalid run: lag p99 of 80 ms")


def test_warnings_of_episodes_and_meters_stand_first(tmp_path):
    doubtful = Synthetic(repeats=1, energy_drift=0.4, warnings=("more than 100 sequences",))
    folder = write_run(tmp_path / "run", doubtful)
    text = " ".join(printed(folder).split())
    assert text.startswith("warning: more than 100 sequences (2 of 2 episodes); warmup energy of")
    assert "none and 11 more windows: counter and power samples differ by +40.0%" in text
    (folder / "figures").mkdir()
    assert "more than 100 sequences" in report.write(folder).read_text()


@pytest.mark.parametrize(
    ("unit", "value", "low", "high", "text"),
    [
        ("times", 9.58, 9.47, 9.65, "9.58x [9.47, 9.65]"),
        ("times", 10.0, None, None, "10.0x (no interval)"),
        ("times", 234.2, 233.0, "inf", "234x [233, inf]"),
        ("less", 0.25, 0.2, 0.3, "25.0 % less [20.0, 30.0]"),
        ("less", -0.02, -0.03, 0.01, "2.0 % more [-1.0, 3.0]"),
        ("more", -0.02, -0.03, -0.01, "2.0 % less [1.0, 3.0]"),
        ("more", None, None, None, "n/a"),
        ("times", 0.0, None, None, "lost"),
        ("times", "inf", None, None, "lost by the baseline"),
    ],
)
def test_estimates_as_text(unit, value, low, high, text):
    entry = {"unit": unit, "estimate": value, "low": low, "high": high}
    assert rows.estimate(entry) == text


def test_a_percentile_among_lost_requests_is_no_number(tmp_path):
    settings = Synthetic(repeats=2, reject_every={"bellman": 20})
    folder = write_run(tmp_path / "run", settings)
    console = Console(file=io.StringIO(), width=160)
    summarize(load_run(folder))
    explain(folder, console)
    text = console.file.getvalue()
    lines = [line.strip() for line in text.splitlines()]
    assert lines[lines.index("p99 of the phase") + 1] == "lost" and "0.00x" not in text


def test_a_sweep_is_one_table(tmp_path):
    jobs = []
    for overload in ("1.1", "1.5"):
        folder = write_run(tmp_path / overload, Synthetic(repeats=2, overload=float(overload)))
        summarize(load_run(folder))
        overrides = ["experiment=summarize_congested", f"arrivals.overload={overload}"]
        jobs.append({"folder": str(folder), "overrides": overrides, "error": None})
    died = {"folder": str(tmp_path / "died"), "overrides": ["arrivals.overload=9"], "error": None}
    jobs.append(died)
    jobs.append({"folder": None, "overrides": ["arrivals.overload=7"], "error": "no server"})
    console = Console(file=io.StringIO(), width=160)
    path = sweep.write_sweep(tmp_path, jobs, console)
    table = list(csv.DictReader(path.open()))
    assert [row["arrivals.overload"] for row in table] == ["1.1", "1.5", "9", "7"]
    claims = json.loads((tmp_path / "1.5" / "claims.json").read_text())["claims"]
    assert float(table[1]["latency_estimate"]) == claims[0]["estimate"]
    assert table[1]["served_verdict"] == claims[2]["verdict"]
    assert table[2]["state"] == "no summary" and table[2]["latency_estimate"] == ""
    assert table[3]["state"] == "failed: no server" and table[3]["run"] == "n/a"
    text = console.file.getvalue()
    assert "arrivals.overload" in text and "n/a" in text and str(path) in text


def test_folders_are_told_apart_by_their_configuration(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    folders = [
        write_run(tmp_path / name, Synthetic(repeats=1, overload=overload))
        for name, overload in (("a", 1.1), ("b", 1.5))
    ]
    for folder in folders:
        summarize(load_run(folder))
    assert sweep.main([str(folder) for folder in folders]) == 0
    text = capsys.readouterr().out
    assert "arrivals.overload" in text and "repeats" not in text


def test_every_run_is_named_at_80_columns(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    folders = [
        write_run(tmp_path / name, Synthetic(repeats=1, overload=overload))
        for name, overload in (("first-run", 1.1), ("second-run", 1.5))
    ]
    for folder in folders:
        summarize(load_run(folder))
    assert sweep.main([str(folder) for folder in folders]) == 0
    text = capsys.readouterr().out
    assert "first-run" in text and "second-run" in text and "arrivals.overload" in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_a_broken_summary_is_one_line_that_names_it(tmp_path, capsys):
    folder = write_run(tmp_path / "run", Synthetic(repeats=1))
    summarize(load_run(folder))
    (folder / "summary.json").write_text("{")
    assert sweep.main([str(folder)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "summary.json cannot be read" in error

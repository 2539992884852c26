"""Good, bad and unjudged requests, and what becomes of the unjudged ones in every result."""

import io
import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from analysis.capacity.points import ClosedPoint, OpenPoint, highest_slo_rate, open_point
from analysis.capacity.present import conclusion, open_table
from analysis.capacity.result import gain, result
from analysis.capacity.study import Study
from analysis.figures import capacity_slo, style
from analysis.frames import load_run
from analysis.goodput import judge, verdicts
from analysis.interchange.combine import combine, export
from analysis.report import write
from analysis.rows import good_share
from analysis.summarize import summarize
from analysis.tables import print_tables
from bellman.errors import ConfigError
from bellman.records import REQUESTS, write_parquet
from bellman.slo import Slo
from tests.analysis.synthetic_run import Synthetic, write_run
from tests.analysis.test_metrics import requests

SLO = Slo(ttft_s=2.0, tpot_s=0.1, e2e_s=20.0)
SATURATED = ClosedPoint("none", 8, 100.0, 200, 2.0, None, None)
GOOD = {
    "intended_s": 0,
    "sent_s": 0,
    "first_token_s": 1,
    "last_token_s": 3,
    "output_tokens": 101,
}
UNCOUNTED = GOOD | {"output_tokens": None}
"""Of a server that sends no usage: its tpot is unknown."""


def test_every_intended_request_counts():
    frame = requests(
        GOOD,
        GOOD | {"first_token_s": 2.5},  # ttft 2.5 s
        GOOD | {"last_token_s": 31},  # tpot 0.3 s, e2e 31 s
        GOOD | {"first_token_s": 2, "last_token_s": 2, "output_tokens": 1},  # one token has no tpot
        {"intended_s": 0, "status": "rejected"},
    )
    assert list(verdicts(frame, SLO)) == [True, False, False, True, False]
    judged = judge(frame, SLO)
    assert (judged.fraction, judged.bounds, judged.reason) == (0.4, (0.4, 0.4), None)
    assert judged.goodput_rps(10.0) == pytest.approx(0.2)
    assert list(verdicts(frame, Slo(None, None, None))) == [True, True, True, True, False]


@pytest.mark.parametrize(
    ("row", "good"),
    [
        (UNCOUNTED, None),
        (UNCOUNTED | {"first_token_s": 2.5}, False),  # misses a limit that is known
        (UNCOUNTED | {"last_token_s": 31}, False),
        (UNCOUNTED | {"status": "error"}, False),
        (GOOD | {"first_token_s": None}, None),  # not streamed: neither ttft nor tpot
        (GOOD | {"first_token_s": None, "last_token_s": 31}, False),
        (GOOD | {"first_token_s": 1, "last_token_s": 1}, None),  # all of it came at once
        (GOOD | {"first_token_s": None, "output_tokens": 1}, None),  # ttft still counts
        (GOOD | {"output_tokens": 0}, True),
        (GOOD | {"last_token_s": None}, None),
    ],
)
def test_unknown_is_never_good(row, good):
    judged = judge(requests(row), SLO)
    assert (judged.good, judged.unjudged) == (good is True, good is None)
    assert judged.fraction == (None if good is None else float(good))


def test_without_the_limit_nothing_needs_the_quantity():
    assert judge(requests(UNCOUNTED), Slo(2.0, None, 20.0)).fraction == 1.0
    assert judge(requests(GOOD | {"first_token_s": None}), Slo(None, None, 20.0)).fraction == 1.0


def test_one_unjudged_request_leaves_bounds_and_a_reason():
    judged = judge(requests(GOOD, GOOD, UNCOUNTED, {"intended_s": 0, "status": "error"}), SLO)
    assert (judged.fraction, judged.bounds) == (None, (0.5, 0.75))
    assert judged.goodput_rps(10.0) is None
    assert judged.reason == "1 of 4 requests cannot be judged: tpot unknown"
    assert (judged.keeps(0.5), judged.keeps(0.6), judged.keeps(0.8)) == (True, None, False)
    assert good_share(judged.fraction, judged.bounds) == "n/a (50.0 to 75.0 %)"
    nothing = judge(requests()[:0], SLO)
    assert (nothing.fraction, nothing.bounds, nothing.keeps(0.5)) == (None, None, None)


FIRST_S, LAST_S = [None, 0.5, 1.0, 3.0, 29.0], [None, 0.6, 1.1, 3.1, 30.0]
ROWS = st.fixed_dictionaries(
    {
        "status": st.sampled_from(["ok", "ok", "error"]),
        "first_token_s": st.sampled_from(FIRST_S),
        "last_token_s": st.sampled_from(LAST_S),
        "output_tokens": st.sampled_from([None, 0, 1, 2, 50]),
    }
)


@settings(deadline=None, max_examples=40)
@given(ROWS, st.sampled_from([None, 2.0]), st.sampled_from([None, 0.1]))
def test_a_verdict_holds_whatever_the_unknown_turns_out_to_be(row, ttft_s, tpot_s):
    slo = Slo(ttft_s, tpot_s, 20.0)
    row = {"intended_s": 0, "sent_s": 0} | row
    choices = {"first_token_s": (0.1, 25.0), "last_token_s": (0.2, 90.0), "output_tokens": (2, 999)}
    low, high = judge(requests(row), slo).bounds
    for values in _filled(row, choices):
        found = judge(requests(row | dict(zip(choices, values, strict=True))), slo)
        assert found.unjudged == 0 and low <= found.fraction <= high


def _filled(row, choices):
    options = [choices[name] if row[name] is None else (row[name],) for name in choices]
    return [(a, b, c) for a in options[0] for b in options[1] for c in options[2]]


def test_a_limit_of_zero_is_refused():
    with pytest.raises(ConfigError, match=r"^ttft_s=0"):
        Slo(ttft_s=0)


def without_usage(folder, every=1):
    """Take the token counts out of every n-th record, as from a server without usage."""
    rows = pq.read_table(folder / "requests.parquet").to_pylist()
    for row in rows[::every]:
        row["output_tokens"] = None
    write_parquet(pa.Table.from_pylist(rows, REQUESTS), folder / "requests.parquet")
    return folder


@pytest.fixture
def uncounted(tmp_path):
    return without_usage(write_run(tmp_path / "run", Synthetic(repeats=2)))


def test_a_run_without_usage_says_so_everywhere(uncounted, capsys):
    summarize(load_run(uncounted))
    write(uncounted)
    arm = json.loads((uncounted / "summary.json").read_text())["arms"]["bellman"]
    assert arm["slo_attainment"] is arm["goodput_rps"] is arm["output_tokens"] is None
    assert arm["tpot_mean_s"] is arm["tpot_p99_s"] is None
    low, high = arm["slo_attainment_bounds"]
    assert low == 0 < high and arm["unjudged"] == high * arm["offered"]
    assert "tpot unknown" in arm["unjudged_reason"]
    assert arm["unknown"] == {"tpot_s": arm["completed"], "output_tokens": arm["completed"]}
    claims = {c["claim"]: c for c in json.loads((uncounted / "claims.json").read_text())["claims"]}
    served = claims["requests served"]
    assert served["estimate"] is not None and served["companions"][0]["estimate"] is None
    assert any("output tokens served: n/a" in caveat for caveat in served["caveats"])
    print_tables(uncounted, Console(width=200))
    shown = capsys.readouterr().out
    for text in (shown, (uncounted / "report.html").read_text()):
        assert "n/a (0.0 to" in text and "ok requests unknown: tpot of" in text


@pytest.mark.parametrize("kind", ["profile_export.jsonl", "vllm_bench.json"])
def test_other_tools_files_without_token_counts_are_not_judged(uncounted, tmp_path, kind):
    export(uncounted)
    combine(tmp_path / "out", [("x", uncounted / "interchange" / f"none-0.{kind}")])
    arm = json.loads((tmp_path / "out" / "summary.json").read_text())["arms"]["x"]
    assert arm["slo_attainment"] is None and arm["slo_attainment_bounds"][0] == 0
    assert arm["unjudged"] > 0 and arm["output_tokens"] is None
    if kind.endswith("json"):
        exported = json.loads((uncounted / "interchange" / f"none-0.{kind}").read_text())
        assert exported["total_output_tokens"] is exported["mean_tpot_ms"] is None
        assert None in exported["output_lens"] and 0 not in exported["output_lens"][:5]


def test_what_vllm_writes_for_a_server_without_usage_is_unknown(tmp_path):
    result = {
        "start_times": [0.0, 1.0],
        "ttfts": [0.5, 0.5],
        "itls": [[9.0], [0.1]],
        "input_lens": [7, 8],
        "output_lens": [0, 3],
        "errors": ["", ""],
    }
    (tmp_path / "vllm.json").write_text(json.dumps(result))
    combine(tmp_path / "out", [("vllm", tmp_path / "vllm.json")])
    arm = json.loads((tmp_path / "out" / "summary.json").read_text())["arms"]["vllm"]
    assert (arm["slo_attainment"], arm["slo_attainment_bounds"]) == (None, [0.5, 1.0])


def points(*known: tuple[float, int, int]) -> list[OpenPoint]:
    """Points of ten requests: (rate, good ones, unjudged ones)."""
    found = []
    for rate_rps, good, unjudged in known:
        rows = [GOOD] * good + [UNCOUNTED] * unjudged
        rows += [{"intended_s": 0, "status": "error"}] * (10 - good - unjudged)
        frame = requests(*rows)
        point = open_point("none", rate_rps, requests=frame, window=(0.0, 10.0), slo=SLO)
        found.append(point)
    return found


@pytest.mark.parametrize(
    ("known", "rate", "is_bound", "unjudged_at"),
    [
        ([(1.0, 10, 0), (2.0, 0, 10), (3.0, 2, 0)], 1.0, True, 2.0),
        ([(1.0, 0, 10), (2.0, 0, 10)], None, True, 1.0),
        ([(1.0, 9, 1), (2.0, 3, 5)], 1.0, False, None),  # judged all the same: 8 of 10 at most
        ([(1.0, 10, 0), (2.0, 9, 1)], 2.0, True, None),
    ],
)
def test_the_highest_rate_rests_on_judged_requests(known, rate, is_bound, unjudged_at):
    found = points(*known)
    study = Study(None, [], {1.0: found}, SLO, slo_attainment=0.9, saturated=SATURATED)
    assert highest_slo_rate(found, 0.9) == rate
    assert study.no_limit_found("none") is is_bound
    unjudged = study.unjudged("none")
    assert (unjudged.rate_rps if unjudged else None) == unjudged_at


def test_the_capacity_study_says_what_it_could_not_judge(tmp_path):
    run = load_run(write_run(tmp_path / "run", Synthetic(arms=("none", "bellman"))))
    base = points((1.0, 10, 0), (2.0, 0, 10))
    treated = [
        OpenPoint(**{**vars(p), "arm": "bellman"}) for p in points((1.0, 10, 0), (2.0, 5, 0))
    ]
    found = Study(run, [], {1.0: base + treated}, SLO, slo_attainment=0.9, saturated=SATURATED)
    assert gain(found) == {"bellman": None}
    lines = conclusion(found)
    assert "none: highest rate with 90% good >= 1.00/s (at 2.00/s 10 of 10 requests" in lines[1]
    assert "bellman: highest rate with 90% good 1.00/s, highest goodput 1.00/s" in lines[2]
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(open_table(found))
    assert "n/a (0.0 to 100.0 %)" in console.export_text()
    arm = result(found)["arms"]["none"]
    assert arm["highest_goodput_rps"] is None and "tpot unknown" in arm["unjudged"]
    assert arm["open"][1]["slo_attainment_bounds"] == (0.0, 1.0)
    assert math.isclose(result(found)["arms"]["bellman"]["highest_goodput_rps"], 1.0)
    style.use_style()
    style.save(capacity_slo.draw(found), tmp_path, "capacity_slo")

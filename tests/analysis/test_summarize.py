import json
import math

import numpy as np
import pyarrow.parquet as pq
import pytest

from analysis.frames import load_run
from analysis.quality import difference_over_documents
from analysis.statistics import pooled_mean
from analysis.summarize import jsonable, summarize, summary
from bellman.errors import RunError
from tests.analysis.synthetic_run import Synthetic, interrupt, write_run


@pytest.fixture(scope="module")
def made(run):
    """The summary of the run of three repeats, read only."""
    return summary(run)


def test_files_are_written_from_the_records(tmp_path):
    folder = write_run(tmp_path / "run")
    summarize(load_run(folder))
    claims = json.loads((folder / "claims.json").read_text())
    assert [c["claim"] for c in claims["claims"]] == [
        "end-to-end latency",
        "energy",
        "requests served",
    ]
    of_a_number = {"unit", "estimate", "low", "high", "definition", "sensitive_to"}
    of_a_number |= {"verdict", "reason", "caveats"}
    of_the_paper = {"claim", "treatment", "paper", "paper_value", "source", "companions"}
    for entry in claims["claims"]:
        assert entry["source"] == "simulated" and entry["definition"]
        assert set(entry) == of_a_number | of_the_paper
        for companion in entry["companions"]:
            assert set(companion) == of_a_number | {"name"}
    energy = claims["claims"][1]
    verdicts = {one["name"]: one["verdict"] for one in energy["companions"]}
    assert [name for name, verdict in verdicts.items() if verdict is not None] == [
        "per request",
        "whole episode",
        "own period",
    ]
    assert all(one["sensitive_to"] for one in energy["companions"] if one["verdict"])
    for entry in claims["together"]:
        assert set(entry) == {"treatment", "reading", "reproduced", "verdicts"}
    written = json.loads((folder / "summary.json").read_text())
    assert written["source"] == "simulated"
    assert written["response_source"] == "extractive stand-in"


def test_every_intended_request_is_counted_once(run, made):
    for arm in made["arms"].values():
        phases = [arm["phases"][name] for name in ("calm", "congested", "recovery")]
        assert arm["offered"] == sum(phase["offered"] for phase in phases)
        assert arm["offered"] == sum(repeat["offered"] for repeat in arm["repeats"])
        assert sum(arm["statuses"].values()) == arm["offered"]
        warmup = arm["phases"]["warmup"]["offered"]
        assert warmup > 0 and arm["offered"] + warmup == len(run.requests) / 2


def test_energy_and_tokens_are_those_of_the_engine(run, made):
    for name, arm in made["arms"].items():
        rows = run.timeline[run.timeline["arm"] == name]
        last = rows.groupby("repeat").last()
        at_warmup = rows[rows["time_s"] == 20.0]
        assert arm["energy_j"] == pytest.approx((last["energy_j"]).sum() - at_warmup.energy_j.sum())
        tokens = last["generated_tokens_total"].sum() - at_warmup["generated_tokens_total"].sum()
        assert arm["generated_tokens"] == tokens
        assert arm["energy_j_per_output_token"] == pytest.approx(arm["energy_j"] / tokens)


def test_the_energy_of_an_arm_is_that_of_its_counted_windows(run, made):
    for name, arm in made["arms"].items():
        windows = run.energy[run.energy["arm"] == name].groupby("window")["energy_j"].sum()
        counted = windows[["calm", "congested", "recovery", "drain"]].sum()
        assert arm["energy_j"] == pytest.approx(counted)
        assert arm["energy_j"] == pytest.approx(
            windows.sum() - windows["total"] - windows["warmup"]
        )
        answered = arm["completed"]
        assert arm["energy_j_per_completed_request"] == pytest.approx(counted / answered)


def test_test_length_stands_beside_latencies_above_capacity(made):
    phases = made["phases"]
    assert phases["congested"]["above_capacity"] is True
    assert phases["congested"]["length_s"] == 100.0
    assert phases["calm"]["above_capacity"] is False


def test_quality_is_a_plain_mean_with_an_interval_over_documents(run, made):
    quality = made["arms"]["none"]["quality"]
    rows = run.requests[(run.requests["arm"] == "none") & (run.requests["phase"] != "warmup")]
    scored = rows[["text_id"]].merge(run.quality, on="text_id")
    f1 = quality["rouge1_f1"]
    assert f1["value"] == pytest.approx(scored["rouge1_f1"].mean())
    by_document = scored.groupby("document_id")["rouge1_f1"].mean()
    error = by_document.std() / math.sqrt(len(by_document))  # all are used about equally often
    assert (f1["high"] - f1["low"]) / 2 == pytest.approx(2.09 * error, rel=0.1)  # t of 19
    assert "documents" in quality["definition"]
    assert quality["response_source"] == "extractive stand-in"


def test_documents_that_differ_alike_in_both_arms_have_a_tight_difference():
    random = np.random.default_rng(2)
    counts = np.full(112, 20.0)
    base = random.normal(0.37, 0.07, 112) * counts
    mean = pooled_mean(base, counts)
    assert mean.high - mean.low == pytest.approx(2 * 1.98 * 0.07 / math.sqrt(112), rel=0.1)
    difference = difference_over_documents(base + 0.01 * counts, counts, base, counts)
    assert difference.low == pytest.approx(0.01) == difference.high


def test_quality_is_compared_by_pairs(made):
    arms = made["arms"]
    difference = arms["bellman"]["quality"]["rouge1_f1_difference"]
    means = [arms[name]["quality"]["rouge1_f1"]["value"] for name in ("bellman", "none")]
    assert difference["value"] == pytest.approx(means[0] - means[1])
    assert difference["low"] > 0  # shorter answers score higher in this synthetic run
    assert "rouge1_f1_difference" not in arms["none"]["quality"]


def test_all_requests_failed(make_run):
    arm = summary(make_run(repeats=1, fail_all=True))["arms"]["none"]
    assert arm["completed"] == 0 and arm["slo_attainment"] == 0.0
    assert arm["e2e_mean_s"] is None and arm["e2e_p50_s"] == math.inf
    assert arm["energy_j_per_completed_request"] is None
    assert arm["quality"] is None


def test_what_an_earlier_version_did_not_record_is_null(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic(repeats=1))
    table = pq.read_table(folder / "requests.parquet").drop_columns(["output_words"])
    pq.write_table(table, folder / "requests.parquet")
    arm = summary(load_run(folder))["arms"]["none"]
    assert arm["output_words_mean"] is None and arm["completed"] > 0


def test_infinity_and_nan_have_words_in_json():
    assert jsonable({"a": [math.inf, math.nan, 1.5]}) == {"a": ["inf", None, 1.5]}


def test_the_slo_comes_from_the_config(make_run):
    run = make_run(repeats=1)
    strict = summary(run)["arms"]["none"]["slo_attainment"]
    run.config["slo"] = {"ttft_s": None, "tpot_s": None, "e2e_s": None}
    assert strict < summary(run)["arms"]["none"]["slo_attainment"] == 1.0


def test_a_folder_without_records_says_what_to_do(tmp_path):
    with pytest.raises(RunError, match=r"analysis\.present"):
        load_run(tmp_path)


def test_invalid_episodes_make_the_run_invalid(make_run):
    run = make_run()
    for episode in run.episodes[:3]:
        episode["invalid_reasons"] = ["lag p99 of 80 ms"]
    assert run.invalid_reasons[0] == "repeat 1, none: lag p99 of 80 ms"
    assert len(summary(run)["invalid_reasons"]) == 3
    assert run.invalid_text.endswith("; and 1 more")


def test_the_arms_of_an_interrupted_run_are_totalled_over_its_complete_repeats(tmp_path):
    whole = summary(load_run(write_run(tmp_path / "whole", Synthetic(repeats=1))))
    cut = interrupt(write_run(tmp_path / "cut", Synthetic(repeats=2)), sent=30)
    run = load_run(cut)
    assert run.complete_repeats("bellman") == [0]
    for name, arm in summary(run)["arms"].items():
        one = whole["arms"][name]
        for key in ("offered", "completed", "lost_share", "offered_rps", "energy_j", "e2e_mean_s"):
            assert arm[key] == pytest.approx(one[key]), (name, key)
        assert arm["quality"]["rouge1_f1"]["value"] == one["quality"]["rouge1_f1"]["value"]
        assert [repeat["repeat"] for repeat in arm["repeats"]] == [0, 1]


def test_an_arm_without_a_complete_repeat_has_no_numbers(tmp_path):
    folder = interrupt(write_run(tmp_path / "run", Synthetic(repeats=1)), sent=30)
    arms = summary(load_run(folder))["arms"]
    cut = arms["bellman"]
    for part in (cut, *cut["phases"].values()):
        assert part["offered"] is part["throughput_rps"] is part["lost_share"] is None
        assert part["energy_j"] is part["e2e_p99_s"] is part["statuses"] is None
    assert cut["repeats"][0]["completed"] > 0
    # The baseline ran to its end, and a missing arm costs its own comparison only.
    assert arms["none"]["completed"] > 0

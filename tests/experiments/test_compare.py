"""The paper's experiment, whole, in virtual time."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bellman.records import STATUSES


def read(folder: Path, name: str):
    if name.endswith(".json"):
        return json.loads((folder / name).read_text())
    return pd.read_parquet(folder / name)


def claim(folder: Path, name: str):
    claims = read(folder, "claims.json")["claims"]
    return next(entry for entry in claims if entry["claim"] == name)


@pytest.fixture(scope="session")
def folder(run_small):
    return run_small()


def test_the_folder_holds_what_the_contract_says(folder):
    names = {path.name for path in folder.iterdir()}
    assert names >= {
        "config.yaml",
        "provenance.json",
        "status.json",
        "study.json",
        "plan.jsonl",
        "episodes",
        "schedules",
        "schedule.parquet",
        "requests.parquet",
        "timeline.parquet",
        "energy.json",
        "summary.json",
        "claims.json",
    }
    assert read(folder, "status.json")["status"] == "done"
    assert not list(folder.rglob("*.partial"))
    episodes = [path.parent for path in (folder / "episodes").glob("*/begun.json")]
    assert len(episodes) == 4
    for episode in episodes:
        assert {path.name for path in episode.iterdir()} == {
            "specification.json",
            "begun.json",
            "requests.jsonl",
            "timeline.jsonl",
            "texts.jsonl",
            "episode.json",
        }


def test_everything_says_that_it_is_simulated(folder):
    for name in ("requests.parquet", "timeline.parquet"):
        assert set(read(folder, name).source) == {"simulated"}
    assert {window["source"] for window in read(folder, "energy.json")["windows"]} == {"simulated"}
    assert {entry["source"] for entry in read(folder, "claims.json")["claims"]} == {"simulated"}
    (capacity,) = read(folder, "capacity.json")
    assert capacity["source"] == "simulated"


def test_every_intended_request_ends_as_exactly_one_status(folder):
    schedule, requests = read(folder, "schedule.parquet"), read(folder, "requests.parquet")
    assert set(requests.status) <= set(STATUSES)
    for _, of_arm in requests.groupby("arm"):
        pairs = [frame[["repeat", "request_id"]] for frame in (of_arm, schedule)]
        ended, intended = (set(pair.itertuples(index=False, name=None)) for pair in pairs)
        assert ended == intended
        assert len(of_arm) == len(schedule)


def test_arms_of_a_repeat_share_the_schedule(folder):
    episodes = pd.DataFrame(read(folder, "episodes.json"))
    assert set(episodes.arm) == {"none", "bellman"}
    assert (episodes.groupby("repeat").schedule_hash.nunique() == 1).all()
    assert episodes.schedule_hash.nunique() == 2
    # The arms take turns, so that neither always goes first.
    orders = [tuple(of_repeat.arm) for _, of_repeat in episodes.groupby("repeat")]
    assert set(orders) == {("none", "bellman"), ("bellman", "none")}


def test_tokens_of_the_engine_are_the_sums_of_the_records(folder):
    requests = read(folder, "requests.parquet").groupby(["repeat", "arm"])
    for episode in read(folder, "episodes.json"):
        of_episode = requests.get_group((episode["repeat"], episode["arm"]))
        assert (of_episode.status == "ok").all()
        assert episode["engine_prompt_tokens"] == of_episode.prompt_tokens.sum()
        assert episode["engine_generated_tokens"] == of_episode.output_tokens.sum()


def test_joules_are_the_integral_of_the_power_series(folder):
    windows = pd.DataFrame(read(folder, "energy.json")["windows"])
    timeline = read(folder, "timeline.parquet")
    summary = read(folder, "summary.json")
    for (repeat, arm), rows in timeline.groupby(["repeat", "arm"]):
        of_episode = windows[(windows.repeat == repeat) & (windows.arm == arm)]
        joules = of_episode.set_index("window").energy_j
        seconds = np.diff(rows.time_s, prepend=0.0)
        integral_j = (rows.power_w * seconds).sum()
        assert integral_j == pytest.approx(joules["warmup"] + joules["total"], rel=1e-9)
        assert joules.drop(["total", "warmup"]).sum() == pytest.approx(joules["total"], rel=1e-9)
        assert rows.power_w.max() <= 700
    # What the tables show is the counted time: everything but the warm-up.
    for arm, of_arm in windows[windows.window != "warmup"].groupby("arm"):
        counted_j = of_arm[of_arm.window != "total"].energy_j.sum()
        assert summary["arms"][arm]["energy_j"] == pytest.approx(counted_j, rel=1e-9)


def test_answers_are_whole_and_in_order_of_time(folder):
    requests = read(folder, "requests.parquet")
    assert (requests.sent_s >= requests.intended_s - 1e-6).all()
    assert (requests.first_token_s > requests.sent_s).all()
    assert (requests.last_token_s >= requests.first_token_s).all()
    texts = read(folder, "texts.parquet")
    assert set(requests.text_id) == set(texts.text_id)
    assert set(read(folder, "quality.parquet").text_id) == set(texts.text_id)


def test_the_controller_shortens_under_congestion_only(folder):
    requests = read(folder, "requests.parquet")
    bellman = requests[requests.arm == "bellman"]
    assert (requests[requests.arm == "none"].word_budget == 300).all()
    assert (bellman[bellman.phase == "calm"].word_budget == 300).all()
    assert (bellman[bellman.phase == "congested"].word_budget < 300).any()
    assert claim(folder, "requests served")["estimate"] > 0


@pytest.mark.slow
def test_the_same_seed_gives_the_same_records_with_figures_and_a_report(run_small, folder):
    again = run_small(draw=True)
    assert again != folder
    assert list((again / "figures").iterdir())
    assert "simulated" in (again / "report.html").read_text()
    assert (again / "requests.parquet").read_bytes() == (folder / "requests.parquet").read_bytes()


@pytest.mark.slow
def test_leaving_the_fitted_range_is_recorded_and_shown(run_small):
    folder = run_small("engine.profile.fitted.sequences=1", "repeats=1")
    for episode in read(folder, "episodes.json"):
        (warning,) = episode["warnings"]
        assert "was not fitted on more than 1 sequences in the batch" in warning
    (shown,) = read(folder, "summary.json")["warnings"]
    assert shown == f"{warning} (2 of 2 episodes)"


@pytest.mark.slow
def test_another_seed_gives_other_arrivals(run_small, folder):
    other = run_small("seed=2", "repeats=1")
    assert other.name != folder.name
    frames = [read(path, "schedule.parquet") for path in (folder, other)]
    schedules = [frame.intended_s[frame.repeat == 0] for frame in frames]
    assert len(schedules[0]) != len(schedules[1]) or (schedules[0] != schedules[1]).any()


@pytest.mark.slow
def test_the_same_arm_twice_is_not_reproduced(run_small):
    folder = run_small("arm=[none]", "+arms.again=${arms.none}", "paper_arm=again", "repeats=1")
    assert read(folder, "study.json")["arms"] == ["none", "again"]
    entries = read(folder, "claims.json")["claims"]
    assert [entry["estimate"] for entry in entries] == [1.0, 0.0, 0.0]
    assert {entry["verdict"] for entry in entries} == {"not reproduced"}


def test_without_congestion_the_controller_costs_nothing(run_small):
    folder = run_small("arrivals.overload=0.5")
    phase = claim(folder, "end-to-end latency")["companions"][0]
    assert phase["name"] == "mean of the whole phase"
    assert phase["low"] - 1e-9 <= 1.0 <= phase["high"] + 1e-9
    assert claim(folder, "end-to-end latency")["verdict"] == "not reproduced"


def test_refused_requests_are_rejected_not_lost(run_small):
    folder = run_small(
        "arm=[none,queue_limit]", "arms.queue_limit.admission.limit=150", "repeats=1"
    )
    requests = read(folder, "requests.parquet")
    rejected = requests[requests.status == "rejected"]
    assert set(rejected.arm) == {"queue_limit"}
    assert rejected.reason.str.contains("limit 150").all()
    assert rejected.last_token_s.isna().all()
    # A server that drops requests looks fast: that alone cannot reproduce the latency claim.
    assert claim(folder, "end-to-end latency")["verdict"] != "reproduced"


def test_requests_that_do_not_finish_are_counted(run_small):
    folder = run_small("drain_s=0", "arrivals.recovery_s=1", "repeats=1")
    requests = read(folder, "requests.parquet")
    unfinished = requests[requests.status == "unfinished"]
    assert len(unfinished) > 0
    assert unfinished.last_token_s.isna().all()
    assert len(requests) == 2 * len(read(folder, "schedule.parquet"))


def test_a_request_past_its_deadline_is_a_timeout(run_small):
    folder = run_small("request_timeout_s=8", "arrivals.capacity_rps=13", "repeats=1")
    requests = read(folder, "requests.parquet")
    late = requests[requests.status == "timeout"]
    assert len(late) > 0
    assert (late.ended_s - late.sent_s).to_numpy() == pytest.approx(8.0, abs=1e-4)
    done = requests[requests.status == "ok"]
    assert (done.last_token_s - done.sent_s).max() <= 8.0 + 1e-4


@pytest.mark.slow
def test_polling_delivers_the_signal_too(run_small, folder):
    polled = read(run_small("signal.delivery=poll", "repeats=1"), "requests.parquet")
    bellman = polled[(polled.arm == "bellman") & (polled.phase == "congested")]
    assert (bellman.word_budget < 300).any()
    assert bellman.level_age_s.max() <= 1.0 + 1e-6

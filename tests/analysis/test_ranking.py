"""The ranking of arms: order, what counts as better, equal length and quality, the Pareto front."""

import json

import matplotlib.pyplot as plt
import pytest
from rich.console import Console

from analysis.figures import frontier, ranking_of_arms, style
from analysis.frames import load_run
from analysis.ranking import best
from analysis.ranking.front import front
from analysis.ranking.present import arms, results
from analysis.ranking.results import at_equal_length, more_attained
from analysis.summarize import summarize
from tests.analysis.synthetic_run import Synthetic, write_run


def row(arm: str, repeats: list[float], f1: float | None = 0.30, **other) -> dict:
    score = {"value": f1, "low": None, "high": None}
    return {
        "arm": arm,
        "slo_attainment": sum(repeats) / len(repeats),
        "attainment_of_repeats": repeats,
        "congested_e2e_mean_s": 10.0,
        "congested_e2e_p99_s": 30.0,
        "energy_j_per_good_request": 60.0,
        "lost_share": 0.0,
        "words": 250.0,
        "rouge1_f1": score,
        "rouge1_recall": score,
    } | other


NONE = row("none", [0.2, 0.3, 0.25], words=300.0)


def test_the_own_law_beats_only_whom_it_beats_in_every_repeat_and_at_equal_quality():
    own = row("mpc", [0.90, 0.92, 0.91])
    beaten = row("aimd", [0.80, 0.82, 0.81])
    other_quality = row("static_75", [0.99, 0.99, 0.99], f1=0.28)
    refusing = row("shed", [0.99, 0.99, 0.99], lost_share=0.2)
    rows = [NONE, own, beaten, other_quality, refusing]
    (f1, recall) = best.sentences(rows, "mpc", "none")
    assert "attains the SLO more often than each of the 1 other shortening arms" in f1
    assert f1.startswith("At equal ROUGE-1 F1")
    assert recall.startswith("At equal ROUGE-1 recall")


def test_the_own_law_that_is_not_clearly_better_does_not_beat():
    own = row("mpc", [0.90, 0.92, 0.91])
    rival = row("pi", [0.80, 0.94, 0.91])
    text = best.sentences([NONE, own, rival], "mpc", "none")[0]
    assert "does not beat 1 of the 1 other shortening arms: pi (+2.7 points [" in text


def test_without_the_own_law_nothing_is_said_and_without_scores_that_it_cannot_be():
    assert best.sentences([NONE, row("pi", [0.9])], "mpc", "none") == []
    text = best.sentences([NONE, row("mpc", [0.9], f1=None)], "mpc", "none")[0]
    assert "not compared" in text


def test_the_difference_of_two_arms_is_paired_by_repeat():
    one, other = row("a", [0.9, 0.5, 0.7]), row("b", [0.8, 0.4, 0.6])
    estimate = more_attained(one, other)
    assert estimate.value == pytest.approx(0.1)
    assert estimate.low == pytest.approx(0.1)  # each repeat says the same


def test_at_equal_length_lies_on_the_line_between_the_two_next_fixed_lengths():
    short = row("static_106", [0.9], words=100.0, congested_e2e_mean_s=5.0)
    long = row("static_212", [0.5], words=200.0, congested_e2e_mean_s=25.0)
    far = row("static_300", [0.1], words=400.0, congested_e2e_mean_s=45.0)
    arm = row("bellman", [0.8], words=150.0, congested_e2e_mean_s=9.0)
    outside = row("tiny", [0.8], words=50.0)
    fixed = ["static_106", "static_212", "static_300"]
    (found,) = at_equal_length([long, arm, short, far, outside], fixed)
    assert found["arm"] == "bellman"
    assert found["between"] == ["static_106", "static_212"]
    assert found["static"]["congested_e2e_mean_s"] == pytest.approx(15.0)
    assert found["static"]["slo_attainment"] == pytest.approx(0.7)
    assert found["own"]["congested_e2e_mean_s"] == pytest.approx(9.0)


def test_the_front_has_the_arms_that_none_beats_in_both():
    rows = [
        row("cheap", [0.9], f1=0.2, congested_e2e_mean_s=5.0),
        row("dear", [0.9], f1=0.4, congested_e2e_mean_s=20.0),
        row("beaten", [0.9], f1=0.2, congested_e2e_mean_s=6.0),
        row("refuses", [0.9], f1=0.5, congested_e2e_mean_s=1.0, lost_share=0.5),
        row("unscored", [0.9], f1=None),
    ]
    names = [one["arm"] for one in front(rows, "rouge1_f1", "congested_e2e_mean_s")]
    assert names == ["cheap", "dear"]


def test_a_refusing_arm_does_not_win_by_the_requests_that_it_refused(tmp_path):
    settings = Synthetic(
        repeats=2,
        arms=("none", "bellman", "refuse"),
        reject_every={"refuse": 2},
        paper_arm="bellman",
    )
    folder = write_run(tmp_path / "run", settings)
    summarize(load_run(folder))
    found = results(folder)
    by_name = {one["arm"]: one for one in found["arms"]}
    assert [one["arm"] for one in found["arms"]] == sorted(
        by_name, key=lambda name: -by_name[name]["slo_attainment"]
    )
    refusing = by_name["refuse"]
    assert refusing["lost_share"] > 0.1
    assert refusing["congested_e2e_p99_s"] == "inf"
    summary = json.loads((folder / "summary.json").read_text())["arms"]["refuse"]
    good = refusing["slo_attainment"] * summary["offered"]
    assert refusing["energy_j_per_good_request"] == pytest.approx(summary["energy_j"] / round(good))
    console = Console(record=True, width=80)
    arms(folder, console, make=True, draw=False)
    text = console.export_text()
    assert "every arm by SLO attainment (simulated, 2 repeats)" in text
    assert all(len(line) <= 80 for line in text.splitlines() if str(tmp_path)[:20] not in line)


def test_the_figures_name_every_arm_and_their_source():
    found = {
        "source": "simulated",
        "response_source": "extractive stand-in",
        "repeats": 3,
        "invalid_reasons": [],
        "slo": {"ttft_s": 2.0, "tpot_s": 0.1, "e2e_s": 20.0},
        "arms": [
            row("mpc", [0.9, 0.8]),
            row("static_75", [0.7], f1=0.2),
            NONE | {"lost_share": None},
        ],
    }
    style.use_style()
    ranked, fronts = ranking_of_arms.draw(found), frontier.draw(found)
    names = [label.get_text() for label in ranked.axes[0].get_yticklabels()]
    assert names == ["mpc", "static_75", "none"]
    assert {text.get_text() for text in fronts.axes[0].texts} == {"mpc", "static_75"}
    for figure in (ranked, fronts):
        assert any("simulated" in text.get_text() for text in figure.texts)
        plt.close(figure)

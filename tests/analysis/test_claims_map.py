"""The claims map: which readings hold, all three at once, and a paragraph of counted numbers."""

import matplotlib.pyplot as plt
import pytest

from analysis.claims_map import why
from analysis.claims_map.results import point_results
from analysis.figures import claims_map as maps
from analysis.figures import style

PAPER = {"end-to-end latency": 8.0, "requests served": 0.19, "energy": 0.25}
UNITS = {"end-to-end latency": "times", "requests served": "more", "energy": "less"}
OWN = "energy: own period"
ALONE = "own period for energy alone"


def reading(name: str, estimate: float | None) -> dict:
    claim = name.partition(":")[0]
    paper = PAPER[claim]
    return {
        "reading": name,
        "unit": UNITS[claim],
        "paper_value": paper,
        "estimate": estimate,
        "low": estimate,
        "high": estimate,
        "holds": estimate is not None and estimate >= paper,
    }


def point(axes: dict, estimates: tuple[float, float, float, float | None], batch: float) -> dict:
    latency, served, window, own = estimates
    return {
        "axes": axes,
        "source": "simulated",
        "invalid_reasons": [],
        "capacity_rps": 13.0,
        "readings": [
            reading("end-to-end latency", latency),
            reading("requests served", served),
            reading("energy", window),
            reading(OWN, own),
        ],
        "together": {
            name: latency >= 8 and served >= 0.19 and saving is not None and saving >= 0.25
            for name, saving in (("congested window", window), (ALONE, own))
        },
        "window": {
            "none": {"running": 340.0, "power_w": 700.0},
            "bellman": {"running": batch, "power_w": 700.0 * (1 - window)},
        },
    }


FOUND = {
    "source": "simulated",
    "prefix_caching": "on (salt)",
    "baseline": "none",
    "treatment": "bellman",
    "grids": {"load": {"a": [1, 2], "b": [1, 2]}, "law": {"q": [5, 9]}},
    "points": [
        point({}, (8.5, 0.20, 0.0, 0.26), 220),
        point({"a": 1, "b": 1}, (4.0, 0.19, 0.001, 0.26), 180),
        point({"a": 1, "b": 2}, (9.0, 0.21, 0.02, 0.20), 90),
        point({"a": 2, "b": 1}, (30.0, 0.25, 0.30, 0.40), 12),
        point({"q": 5}, (40.0, 0.10, 0.28, 0.40), 14),
        point({"q": 9}, (7.0, 0.20, 0.05, None), 60),
    ],
}


def test_all_three_hold_at_once_by_each_reading_of_the_energy():
    assert [why.at_once(one) for one in FOUND["points"]] == [
        [ALONE],
        [],
        [],
        ["congested window", ALONE],
        [],
        [],
    ]


def test_the_paragraph_counts_and_says_that_both_exclude_each_other():
    text = why.paragraph(FOUND)
    assert "Of 6 points (simulated, prefix caching on (salt)), the largest" in text
    assert "the paper's figure at 4, the requests served at 5." in text
    assert "reaches it in the window 2, own period 4 times." in text
    assert f"of the energy: congested window 1, {ALONE} 2 times." in text
    assert "where the ratio is about 8 the window saves at most 5.0 %" in text
    assert "where the window saves as much the ratio is 30 to 40x" in text
    assert "exclude each other" in text
    assert "490 for 700 W with a batch of 12 for 340 requests" in text
    assert "2 points that save less than 1 %" in text
    assert "batches of 180 requests or more" in text


def test_the_paragraph_says_so_where_they_do_not_exclude_each_other():
    both = point({}, (8.5, 0.20, 0.26, 0.26), 50)
    text = why.paragraph(FOUND | {"points": [*FOUND["points"], both]})
    assert "meet at 1 of 7 points" in text
    assert "exclude" not in text


def test_a_point_of_an_invalid_run_counts_for_nothing():
    points = [one | {"invalid_reasons": ["lag"]} for one in FOUND["points"]]
    assert "nothing can be said" in why.paragraph(FOUND | {"points": points})


def test_every_grid_is_drawn_and_what_a_point_lacks_is_not_zero():
    style.use_style()
    figures = dict(maps.draw(FOUND))
    assert list(figures) == ["claims_map_1", "claims_map_lines", "claims_map_price"]
    by_title = {axes.get_title(): axes for axes in figures["claims_map_1"].axes}
    texts = [text.get_text() for text in by_title["all three at once"].texts]
    assert sorted(texts) == ["-", "-", "co", "n/a"]
    lines = [text.get_text() for text in figures["claims_map_lines"].axes[0].texts]
    assert "n/a" in lines
    for figure in figures.values():
        captions = " ".join(text.get_text() for text in figure.texts)
        assert "imulated" in captions
        plt.close(figure)


def test_a_point_of_records_has_the_claims_and_the_other_readings_of_the_energy(run):
    found = point_results({}, run)
    names = [one["reading"] for one in found["readings"]]
    assert {"end-to-end latency", "energy", "energy: per request", "requests served"} <= set(names)
    assert "requests served: output tokens served" not in names
    assert found["window"]["none"]["power_w"] == pytest.approx(600.0, rel=0.05)
    assert found["window"]["none"]["running"] > 0

"""What control adds under multiples of the SLO, and where that is only a bound or not known."""

import io

import pytest
from rich.console import Console

from analysis.capacity.points import ClosedPoint, OpenPoint, open_point
from analysis.capacity.present import conclusion, scale_table
from analysis.capacity.result import by_scale, gain
from analysis.capacity.study import Study
from analysis.figures import capacity_slo_scale, style
from analysis.frames import load_run
from bellman.slo import Slo
from tests.analysis.synthetic_run import Synthetic, write_run

SLO = Slo(2.0, 0.1, 20.0)
GRID = (1.0, 1.5, 2.0)
SATURATED = ClosedPoint("none", 4, 100.0, 120, 1.2, None, None)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return load_run(write_run(tmp_path_factory.mktemp("run"), Synthetic()))


def points(run, arm: str, highest_good_rps: float) -> list[OpenPoint]:
    """Points at the rates of `GRID`: all requests good up to a rate, none beyond it."""
    requests = run.requests[run.requests["arm"] == arm]
    return [
        open_point(
            arm,
            rate_rps,
            requests=requests,
            window=(0.0, 300.0),
            slo=Slo(None, None, None if rate_rps <= highest_good_rps else 1e-6),
        )
        for rate_rps in GRID
    ]


def study(run, none: float, bellman: float) -> Study:
    """Under the limits themselves nothing passes; under twice the limits up to the given rates."""
    scales = {
        1.0: points(run, "none", 0.0) + points(run, "bellman", 0.0),
        2.0: points(run, "none", none) + points(run, "bellman", bellman),
    }
    return Study(run, [], scales, SLO, slo_attainment=0.95, saturated=SATURATED)


@pytest.mark.parametrize(
    ("none", "bellman", "expected", "shown"),
    [
        (1.0, 1.5, 0.5, "+50%"),
        (1.0, 2.0, 1.0, ">= +100%"),  # every rate tried was good: at least that
        (2.0, 2.0, None, "n/a"),  # the baseline might carry any load
        (2.0, 1.0, None, "n/a"),
        (0.0, 1.5, None, "n/a"),  # no rate of the baseline passes
    ],
)
def test_the_gain_is_known_only_with_a_limit_of_the_baseline(run, none, bellman, expected, shown):
    found = study(run, none, bellman)
    assert gain(found, 2.0)["bellman"] == expected
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(scale_table(found))
    row = next(line for line in console.export_text().splitlines() if " 40 " in line)
    assert row.rstrip("│ ").endswith(f" {shown}")


def test_every_scale_has_its_limits_and_rates(run):
    found = by_scale(study(run, 1.0, 2.0), 2.0)
    assert found["slo"] == {"ttft_s": 4.0, "tpot_s": 0.2, "e2e_s": 40.0}
    assert found["highest_slo_rate_rps"] == {"none": 1.0, "bellman": 2.0}
    assert found["no_limit_found"] == {"none": False, "bellman": True}
    assert by_scale(study(run, 1.0, 2.0), 1.0)["highest_slo_rate_rps"]["none"] is None


def test_the_last_lines_say_what_is_not_known(run):
    found = study(run, 2.0, 2.0)
    lines = conclusion(Study(run, [], {1.0: found.open_by_scale[2.0]}, SLO, 0.95, SATURATED))
    assert "none: highest rate with 95% good 2.00/s (every rate tried was good)" in lines[1]
    assert lines[-1] == "what bellman adds: n/a, no limit was found for none"


def test_without_a_capacity_the_last_line_says_why(run):
    lines = conclusion(Study(run, [], {1.0: []}, SLO, 0.95, None))
    assert lines == ["capacity without control: n/a, its closed loop did not end"]


def test_the_figure_is_drawn_with_scales_that_nothing_passes(run, tmp_path):
    style.use_style()
    style.save(capacity_slo_scale.draw(study(run, 1.0, 2.0)), tmp_path, "capacity_slo_scale")
    assert (tmp_path / "capacity_slo_scale.png").stat().st_size > 0


def test_limits_in_words():
    assert SLO.in_words == "ttft 2 s, tpot 0.1 s, e2e 20 s"
    assert Slo(None, None, 20.0).scaled(1.5).in_words == "e2e 30 s"
    assert Slo(None, None, None).scaled(2.0).in_words == "no limits"

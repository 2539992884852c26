"""Every figure but those of a comparison, from made-up results: what all of them have in common."""

import pkgutil
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from analysis import figures
from analysis.capacity.points import ClosedPoint
from analysis.capacity.study import Study
from analysis.figures import (
    capacity_closed_loop,
    capacity_offered,
    capacity_slo,
    capacity_slo_scale,
    claims_map,
    fluid,
    frontier,
    grid_map,
    kernel_fit,
    ranking_of_arms,
    replay_latency,
    sensitivity,
    style,
    uncertainty_tornado,
    validation_errors,
    validation_prompts,
)
from analysis.validation.errors import METRICS
from tests.analysis import test_capacity_scales, test_claims_map, test_ranking, test_uncertainty

SLO = {"ttft_s": 2.0, "tpot_s": 0.1, "e2e_s": 20.0}
HELD_APART = {
    "bars": "draws bars of a figure",
    "names": "writes names into a figure",
    "over_time": "draws panels of a figure",
    "style": "what all figures share",
}
"""Modules beside the figures that are none."""


def texts(figure: Figure) -> list[str]:
    """Every text that a figure shows, ticks and what stands at an axis' end among them."""
    ends = []
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        axis.get_ticklabels(which="both")  # makes them
        ends.append(axis.get_major_formatter().get_offset())
    shown = figure.findobj(lambda artist: isinstance(artist, Text) and artist.get_visible())
    return [*ends, *(artist.get_text() for artist in shown)]


def capacity(run) -> Study:
    clients = [2**step for step in range(11)]
    closed = [
        ClosedPoint(arm, number, 240.0, 1000, min(number, 40) / 2.0, None, number / 2.0)
        for arm in run.arms
        for number in clients
    ]
    opened = test_capacity_scales.study(run, 1.0, 2.0).open_by_scale
    return Study(run, closed, opened, test_capacity_scales.SLO, 0.95, closed[-1])


def arms(number: int) -> dict[str, Any]:
    """Many arms, most of them alike: their marks lie in a heap."""
    heap = [
        test_ranking.row(
            f"bellman_law_{place}",
            [0.9],
            f1=0.36 + 0.002 * (place % 4),
            congested_e2e_mean_s=8.0 + 0.4 * place,
            energy_j_per_good_request=50.0 + place,
        )
        for place in range(number - 2)
    ]
    ends = [
        test_ranking.row("tpm", [0.5], f1=0.33, congested_e2e_mean_s=40.0),
        test_ranking.row("none", [0.2], f1=0.33, congested_e2e_mean_s=41.0),
        test_ranking.row("static_75", [0.99], f1=0.40, congested_e2e_mean_s=2.0),
    ]
    return {
        "source": "simulated",
        "response_source": "extractive stand-in",
        "repeats": 3,
        "invalid_reasons": [],
        "slo": SLO,
        "arms": [*heap, *ends],
    }


def grid(axes: dict[str, list[Any]]) -> dict[str, Any]:
    at = pd.MultiIndex.from_product(axes.values(), names=axes.keys()).to_frame(index=False)
    claim = {"treatment": "bellman", "low": 1.0, "high": 9.0, "verdict": "partly", "companions": []}
    points = [
        {
            "axes": point,
            "capacity_rps": 13.0,
            "source": "simulated",
            "prefix_caching": False,
            "repeats": [1, 2],
            "claims": [claim | {"claim": "end-to-end latency", "estimate": 2.0 + number}],
        }
        for number, point in enumerate(at.to_dict("records"))
    ]
    return {"axes": list(axes), "source": "simulated", "points": points}


def sensitivities(run) -> dict[str, Any]:
    quantities = ["slo_attainment", "energy_j_per_good_request", "fairness_slo"]
    grids = {
        "delay of the level (s)": {"signal.delay_s": [0.0, 2.0, 1e6]},
        "both": {"signal.delay_s": [0.0, 2.0], "signal.loss": [0.0, 0.9]},
    }
    places = [{"signal.delay_s": value} for value in (0.0, 2.0, 1e6)]
    places += [{"signal.delay_s": a, "signal.loss": b} for a in (0.0, 2.0) for b in (0.0, 0.9)]
    points = [
        {
            "axes": place,
            "repeats": 2,
            "arms": [
                {"arm": arm} | dict.fromkeys(quantities, 1e-6 * 100.0**number) for arm in run.arms
            ],
        }
        for number, place in enumerate(places)
    ]
    return {"source": "simulated", "grids": grids, "quantities": quantities, "points": points}


def fluid_arms() -> dict[str, Any]:
    lines = ("lowest", "highest", "simulated", "fluid", "level", "fluid_level")
    arm = {"arm": "bellman", "errors": {"congested": {"error": 0.1}}}
    arm |= {"time_s": [0.0, 1.0], **{name: [0.0, 1.0] for name in lines}}
    phases = [{"name": "congested", "start_s": 0.0, "end_s": 1.0}]
    return {"source": "simulated", "repeats": 2, "arms": [arm], "phases": phases}


def steady_states() -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"profile": "p", "task": "chat", "split": "as it is", "role": role}
            | {"max_num_seqs": limit, "prompt_factor": factor}
            | {f"{metric}_error": 0.01 * limit for metric in METRICS}
            for role in ("judged", "fitted")
            for limit in (8, 16, 96, 128, 1024)
            for factor in (0.5, 1.0)
        ]
    )


def kernels() -> Figure:
    steps = pd.DataFrame({"kind": ["decode", "prefill"], "latency_ms": [0.001, 2_000_000.0]})
    return kernel_fit.draw(steps, np.array([0.01, -0.02]), "a model of $5")


DRAWN: dict[str, Callable[[Any], Iterable[Figure]]] = {
    "capacity_closed_loop": lambda run: [capacity_closed_loop.draw(capacity(run))],
    "capacity_offered": lambda run: [capacity_offered.draw(capacity(run))],
    "capacity_slo": lambda run: [capacity_slo.draw(capacity(run))],
    "capacity_slo_scale": lambda run: [capacity_slo_scale.draw(capacity(run))],
    "claims_map": lambda run: [one for _, one in claims_map.draw(test_claims_map.FOUND)],
    "fluid": lambda run: [fluid.draw(fluid_arms())],
    "frontier": lambda run: [frontier.draw(arms(5))],
    "grid_map": lambda run: [
        one
        for axes in ({"a.x": [1, 2]}, {"a.x": [1, 2], "b/y": ["p", "q"], "c.z": [0, 1]})
        for _, one in grid_map.draw(grid(axes))
    ],
    "kernel_fit": lambda run: [kernels()],
    "ranking_of_arms": lambda run: [ranking_of_arms.draw(arms(5))],
    "replay_latency": lambda run: [replay_latency.draw(run, run)],
    "sensitivity": lambda run: [one for _, one in sensitivity.draw(sensitivities(run))],
    "uncertainty_tornado": lambda run: [uncertainty_tornado.draw(test_uncertainty.STUDY)],
    "validation_errors": lambda run: [validation_errors.draw(steady_states())],
    "validation_prompts": lambda run: [validation_prompts.draw(steady_states())],
}


def test_every_figure_that_there_is_has_its_test():
    comparisons = {module.__name__.rsplit(".", 1)[1] for module in figures.modules()}
    found = {info.name for info in pkgutil.iter_modules(figures.__path__)} - {"__main__"}
    assert found - comparisons - HELD_APART.keys() == DRAWN.keys()


MAPS = {"claims_map", "grid_map"}
"""What they are drawn with takes seconds to import."""


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] * (one in MAPS)) for one in DRAWN]
)
def test_no_text_is_markup_and_no_number_an_exponent(run, name):
    style.use_style()
    for figure in DRAWN[name](run):
        shown = texts(figure)
        assert any(any(letter.isdigit() for letter in text) for text in shown)
        for text in shown:
            assert "\\math" not in text and "$\\" not in text, text
            assert not text.replace("\N{MINUS SIGN}", "-").lstrip("+-").startswith("1e"), text
        plt.close(figure)


def test_the_numbers_of_clients_are_those_that_were_tried_and_none_covers_another(run):
    style.use_style()
    figure = capacity_closed_loop.draw(capacity(run))
    figure.draw_without_rendering()
    labels = [one for one in figure.axes[1].get_xticklabels() if one.get_text()]
    assert [one.get_text() for one in labels] == ["1", "4", "16", "64", "256", "1024"]
    boxes = [one.get_window_extent() for one in labels]
    assert not any(left.overlaps(right) for left, right in pairwise(boxes))
    plt.close(figure)


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [
        ([8, 16, 32, 64, 96, 128, 192], [8, 16, 32, 64, 96, 192]),
        ([3], [3]),
        ([100, 10, 10, 1], [1, 10, 100]),
        ([0.001, 1e6], [0.001, 1e6]),
    ],
)
def test_of_numbers_near_each_other_some_are_left_out(numbers, shown):
    style.use_style()
    figure, axes = plt.subplots()
    axes.plot(numbers, numbers)
    style.log_at(axes, "x", numbers)
    assert axes.get_xticks().tolist() == shown
    plt.close(figure)


@pytest.mark.parametrize(
    ("value", "text"), [(1e6, "1000000"), (2e-6, "0.000002"), (0.5, "0.5"), (10 * 0.1 * 3, "3")]
)
def test_a_plain_number_has_no_exponent(value, text):
    assert style.plain_number(value) == text


@pytest.mark.slow
def test_names_in_a_heap_are_all_written_and_none_covers_a_name_or_a_mark():
    style.use_style()
    found = arms(14)
    figure = frontier.draw(found)
    figure.draw_without_rendering()
    for panel in figure.axes:
        names = [text for text in panel.texts if text.get_text()]
        assert {text.get_text() for text in names} == {one["arm"] for one in found["arms"]}
        boxes = [Text.get_window_extent(text) for text in names]
        marks = [panel.transData.transform(text.xy) for text in names]
        for number, box in enumerate(boxes):
            assert panel.bbox.contains(*box.min) and panel.bbox.contains(*box.max)
            assert not box.count_overlaps(boxes[:number])
            assert not any(box.contains(*mark) for mark in marks)
    plt.close(figure)


def test_every_file_of_a_figure_has_its_layout(tmp_path):
    """The axes stay above the line of the source, in the file that is written last, too."""
    style.use_style()
    figure = validation_errors.draw(steady_states())
    figure.get_layout_engine().execute(figure)
    laid_out = [axes.get_position().bounds for axes in figure.axes]
    style.save(figure, tmp_path, "figure", ("pdf", "png"))
    assert [axes.get_position().bounds for axes in figure.axes] == laid_out
    plt.close(figure)

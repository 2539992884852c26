"""Envoy's admission control against its formula."""

import pytest

from bellman.admission.base import Refusal
from bellman.admission.shed import Shed
from tests.admission.entrance import Entrance


def after(good: int, late: int, left: int = 0, **parameters: float) -> Entrance:
    """Return an entrance after requests that ended at 100 s, some of them late."""
    entrance = Entrance(Shed(good_s=10.0, largest_probability=1.0, **parameters))
    entrance.now_s = 85.0
    assert entrance.enters(late) == late
    entrance.now_s = 95.0
    assert entrance.enters(good + left) == good + left
    entrance.now_s = 100.0
    entrance.end(late + good)
    entrance.end(left, "left")
    return entrance


@pytest.mark.parametrize(
    ("good", "late", "left", "parameters", "probability"),
    [
        (0, 0, 0, {}, 0.0),
        (95, 5, 0, {}, 0.0),  # as many as the threshold asks for
        (57, 43, 0, {}, (100 - 57 / 0.95) / 101),
        (57, 20, 23, {}, (100 - 57 / 0.95) / 101),
        (0, 9, 0, {}, 9 / 10),
        (50, 50, 0, {"threshold": 0.5}, 0.0),
        (25, 75, 0, {"threshold": 0.5, "aggression": 2.0}, (50 / 101) ** 0.5),
    ],
)
def test_the_probability_is_the_formulas(good, late, left, parameters, probability) -> None:
    door = after(good, late, left, **parameters).door
    assert door.probability(100.0) == pytest.approx(probability, abs=1e-12)


def test_the_probability_has_a_largest_value_and_the_window_an_end() -> None:
    entrance = Entrance(Shed(good_s=1.0))
    entrance.enters(200)
    entrance.now_s = 5.0
    entrance.end(200)
    assert entrance.door.probability(34.9) == 0.8
    assert entrance.door.probability(35.0) == 0.0


def test_requests_are_refused_by_chance_and_the_same_ones_again() -> None:
    """2,000 draws at p = 0.396: the share is within four standard deviations of it."""
    decisions = []
    for _ in range(2):
        entrance = after(57, 43)
        decisions.append([entrance.ask() for _ in range(2000)])
    refused = [entry for entry in decisions[0] if entry is not None]
    assert decisions[0] == decisions[1]
    probability = (100 - 57 / 0.95) / 101
    assert (
        abs(len(refused) / 2000 - probability) < 4 * (probability * (1 - probability) / 2000) ** 0.5
    )
    assert refused[0] == Refusal(503, "shed with probability 0.396")


def test_what_is_refused_counts_for_nothing() -> None:
    entrance = after(0, 9)
    before = entrance.door.probability(100.0)
    assert entrance.enters(50) < 50
    assert entrance.door.probability(100.0) == before

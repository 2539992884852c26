"""Envoy's adaptive concurrency on sequences whose limits are worked out by hand."""

import pytest

from bellman.admission.base import Refusal
from bellman.admission.gradient_limit import GradientLimit
from bellman.errors import ConfigError
from tests.admission.entrance import Entrance

PARAMETERS = {
    "update_s": 10.0,
    "smallest_limit": 4,
    "largest_limit": 20,
    "measured_requests": 8,
    "measure_every_s": 1000.0,
    "jitter": 0.0,
}


def measured(**parameters: float) -> Entrance:
    """Return an entrance at 4 s, when the minimal latency has just been measured: 2 s."""
    entrance = Entrance(GradientLimit(**(PARAMETERS | parameters)))  # type: ignore[arg-type]
    for _ in range(2):
        assert entrance.enters(10) == 4
        entrance.now_s += 2.0
        entrance.end(4)
    assert (entrance.door.min_rtt_s, entrance.door.limit) == (2.0, 4)
    return entrance


def limit_after(entrance: Entrance, *latencies_s: float) -> int:
    """Let requests of these latencies (rising) run in the next window; return the limit after."""
    start_s = entrance.now_s
    assert entrance.enters(len(latencies_s)) == len(latencies_s)
    for latency_s in latencies_s:
        entrance.now_s = start_s + latency_s
        entrance.end()
    entrance.now_s = start_s + 10.0
    entrance.ask()
    entrance.end(outcome="left")
    return int(entrance.door.limit)


def test_the_limit_follows_the_gradient_with_headroom_of_its_root() -> None:
    entrance = measured()
    assert limit_after(entrance, 2.0) == 7  # 2 x 1.25 / 2 x 4 = 5, + sqrt(5) = 7.2
    assert limit_after(entrance, 2.5) == 9  # 1 x 7 + sqrt(7) = 9.6
    assert limit_after(entrance, 4.0) == 7  # 0.625 x 9 = 5.6, + 2.4 = 8.0 less a little: 7.99
    assert limit_after(entrance, 9.0) == 5  # at most halved: 3.5 + 1.9 = 5.4
    assert limit_after(entrance, 0.1) == 13  # at most doubled: 10 + 3.2
    assert limit_after(entrance, 1.0) == 20  # the largest
    assert limit_after(entrance) == 20  # nothing ended: nothing is known


def test_a_window_stands_for_its_median() -> None:
    entrance = measured()
    assert limit_after(entrance, 0.1, 2.5, 9.0) == 6  # 1 x 4 + 2


def test_only_answers_count_for_latency() -> None:
    entrance = measured()
    entrance.enters(2)
    entrance.now_s += 9.0
    entrance.end(1, "left")
    entrance.end(1, "error")
    entrance.now_s += 2.0
    assert (entrance.enters(5), entrance.door.limit) == (4, 4)


def test_at_the_limit_it_refuses() -> None:
    entrance = measured()
    assert entrance.enters(5) == 4
    assert entrance.ask() == Refusal(503, "gradient limit: 4 out, limit 4")
    entrance.end(3, "left")
    assert entrance.enters(5) == 3


def test_the_minimal_latency_is_measured_again_by_requests_sent_since() -> None:
    entrance = measured(measure_every_s=15.0)
    assert limit_after(entrance, 2.0) == 7
    assert entrance.enters(7) == 7  # at 14 s
    entrance.now_s = 19.5  # since 19 s it measures: 4 may be out, and 7 are
    assert entrance.ask() == Refusal(503, "gradient limit: 7 out, limit 4")
    entrance.end(7)  # sent before: they say nothing
    for _ in range(2):
        assert entrance.enters(10) == 4
        entrance.now_s += 3.0
        entrance.end(4)
    assert entrance.door.min_rtt_s == 3.0
    assert entrance.door.limit == 7  # as before


def test_five_windows_at_the_smallest_limit_make_it_measure_again() -> None:
    entrance = measured(buffer=0.0)
    for _ in range(4):
        assert limit_after(entrance, 9.0) == 4  # 0.5 x 4 + 1.4 = 3.4
    assert entrance.door.min_rtt_s == 2.0
    limit_after(entrance, 9.0)
    for _ in range(2):
        assert entrance.enters(10) == 4
        entrance.now_s += 5.0
        entrance.end(4)
    assert entrance.door.min_rtt_s == 5.0


def test_limits_out_of_order_are_refused() -> None:
    with pytest.raises(ConfigError, match="largest_limit"):
        GradientLimit(smallest_limit=10, largest_limit=9)

"""PIE's form and CoDel's against their formulas, over delays that are written out."""

import math

import pytest

from bellman.controllers.codel import Codel
from bellman.controllers.pi import Pi
from bellman.sensing.failure import NotReported
from bellman.sensing.observation import Observation


def levels(law, delays_s, dt_s=1.0):
    state, found = law.start(), []
    for delay_s in delays_s:
        state = law.update(state, Observation(0.0, 1, 1, oldest_waiting_s=delay_s), dt_s)
        found.append(state.level)
    return found


def test_pi_adds_the_error_and_the_change():
    law = Pi(target_queue_delay_s=0.5, integral_gain=0.01, proportional_gain=0.1)
    delays_s = [0.0, 2.5, 2.5, 4.5, 0.5, 0.5, 0.0]
    assert levels(law, delays_s) == pytest.approx(
        [
            0,  # -0.005: kept in the range
            0.27,  # 0.01 x 2 + 0.1 x 2.5
            0.29,
            0.53,  # 0.01 x 4 + 0.1 x 2
            0.13,  # 0.1 x -4
            0.13,
            0.075,  # 0.01 x -0.5 + 0.1 x -0.5
        ]
    )


def test_pi_keeps_its_level_in_the_range():
    law = Pi(target_queue_delay_s=0.5, integral_gain=0.01, proportional_gain=0.1)
    assert levels(law, [1e6, 0.0]) == [1.0, 0.0]


def test_codel_waits_an_interval_and_then_drops_faster_and_faster():
    law = Codel(target_queue_delay_s=0.5, interval_s=4.0, step=0.1)
    found = levels(law, [0.4, 0.5, *[9.0] * 16])
    # Above since 2 s: the first drop is at 6 s, the next 4 s later, then 4 / sqrt(2) after the time
    # that was due, 4 / sqrt(3), ...
    drops_s = [6.0, 10.0]
    for count in (2, 3, 4):
        drops_s.append(drops_s[-1] + 4 / math.sqrt(count))
    expected = [0.1 * sum(drop_s <= now_s for drop_s in drops_s) for now_s in range(1, 19)]
    assert found == pytest.approx(expected)
    assert found[-1] == pytest.approx(0.5)


def test_a_dip_below_the_target_starts_the_interval_again():
    law = Codel(target_queue_delay_s=0.5, interval_s=4.0, step=0.1)
    assert levels(law, [*[9.0] * 4, 0.1] * 5) == [0.0] * 25


def test_codel_falls_a_step_an_interval_below_the_target():
    law = Codel(target_queue_delay_s=0.5, interval_s=2.0, step=0.25)
    found = levels(law, [*[9.0] * 5, *[0.0] * 5])
    assert found[4:] == [0.5, 0.5, 0.25, 0.25, 0.0, 0.0]


def test_codel_goes_on_where_it_stood_after_a_short_pause():
    law = Codel(target_queue_delay_s=0.5, interval_s=4.0, step=0.01)
    spell, pause = [9.0] * 30, [0.0] * 2
    state = law.start()
    for delay_s in [*spell, *pause, *[9.0] * 5]:
        state = law.update(state, Observation(0.0, 1, 1, oldest_waiting_s=delay_s), 1.0)
    # 14 drops more than the first in 30 s; the second spell begins with that count.
    assert state.dropping
    assert state.count == state.last_count > 10
    assert state.drop_next_s - state.now_s == pytest.approx(4 / math.sqrt(state.count))


def test_a_long_silence_drops_no_more_than_there_is():
    law = Codel(target_queue_delay_s=0.5, interval_s=4.0, step=0.3)
    state = law.start()
    for dt_s in (1.0, 5.0, 1e9):
        state = law.update(state, Observation(0.0, 1, 1, oldest_waiting_s=9.0), dt_s)
    assert (state.level, state.count) == (1.0, 4)


@pytest.mark.parametrize("law", [Pi(0.5, 0.01, 0.1), Codel(0.5, 4.0, 0.1)])
def test_without_the_age_of_the_oldest_there_is_no_level(law):
    with pytest.raises(NotReported, match="needs oldest_waiting_s"):
        law.update(law.start(), Observation(0.0, 1, 1), 1.0)

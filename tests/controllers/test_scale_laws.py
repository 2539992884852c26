"""The laws on the scale against their formulas, over observations that are written out."""

import pytest

from bellman.controllers.aimd import Aimd
from bellman.controllers.dctcp import Dctcp
from bellman.controllers.gradient2 import Gradient2
from bellman.controllers.vegas import Vegas
from bellman.controllers.window import Window
from bellman.errors import ConfigError
from bellman.sensing.failure import NotReported
from bellman.sensing.observation import Observation


def scales(law, observations, dt_s):
    state, found = law.start(), []
    for observation in observations:
        state = law.update(state, observation, dt_s)
        found.append(1 - state.level)
    return found


def finished(requests, seconds, outstanding=1):
    """Return what is seen when so many requests have finished, after so many seconds in all."""
    return Observation(0.0, 0, outstanding, e2e_count=requests, e2e_sum_s=seconds)


def generated(tokens, outstanding):
    return Observation(0.0, 0, outstanding, generated_tokens_total=tokens)


def test_aimd_halves_when_the_mean_is_late_and_adds_when_it_holds():
    law = Aimd(target_e2e_s=10.0, increase=0.1, decrease=0.5, alpha_min=0.2, period_s=4.0)
    seen = [
        finished(5, 100.0),  # the totals at the start say nothing of the episode
        finished(6, 130.0),
        finished(8, 141.0),  # 3 requests, 41 s: late
        finished(9, 151.0),
        finished(9, 151.0),  # 1 request, 10 s: just in time
        finished(9, 151.0),
        finished(9, 151.0),  # nobody finished
        finished(9, 151.0),
        finished(10, 171.0),  # late, 0.3
        finished(11, 191.0),
        finished(12, 211.0),  # late, 0.15: below the floor
    ]
    assert scales(law, seen, 2.0) == pytest.approx(
        [1, 1, 0.5, 0.5, 0.6, 0.6, 0.6, 0.6, 0.3, 0.3, 0.2]
    )


def test_aimd_takes_an_empty_engine_for_one_that_holds_the_target():
    law = Aimd(target_e2e_s=10.0, increase=0.1, decrease=0.5, alpha_min=0.2, period_s=2.0)
    seen = [finished(0, 0.0), finished(1, 30.0, outstanding=0), *[finished(1, 30.0, 0)] * 3]
    assert scales(law, seen, 2.0) == pytest.approx([1, 0.5, 0.6, 0.7, 0.8])


def test_what_finished_between_two_looks_at_an_empty_engine_counts():
    law = Aimd(target_e2e_s=10.0, increase=0.1, decrease=0.5, alpha_min=0.2, period_s=60.0)
    assert scales(law, [finished(0, 0.0, 0), finished(1, 30.0, 0)], 60.0) == [1, 0.5]


def test_dctcp_cuts_by_half_the_averaged_share_of_marks():
    law = Dctcp(mark_above=10, gain=0.5, increase=0.1, alpha_min=0.1, round_trip_s=2.0)
    queues = [(10, 10), (11, 9), (11, 99), (0, 0)]
    seen = [Observation(0.0, 0, queue) for pair in queues for queue in pair]
    # share: 1 -> 0.5 (F = 0) -> 0.5 (F = 1/2) -> 0.75 (F = 1) -> 0.375 (F = 0)
    after_each = [1.0, 0.75, 0.75 * 0.625, 0.75 * 0.625 + 0.1]
    assert scales(law, seen, 1.0)[1::2] == pytest.approx(after_each)


def test_dctcp_with_the_gain_of_the_rfc():
    law = Dctcp(mark_above=10, gain=1 / 16, increase=0.1, alpha_min=0.1, round_trip_s=1.0)
    share, scale = 1.0, 1.0
    queues = [0, 0, 20, 20, 0]
    expected = []
    for queue in queues:
        share = 15 / 16 * share + (queue > 10) / 16
        scale = scale * (1 - share / 2) if queue > 10 else min(1.0, scale + 0.1)
        expected.append(scale)
    found = scales(law, [Observation(0.0, 0, queue) for queue in queues], 1.0)
    assert found == pytest.approx(expected)
    assert found[2] == pytest.approx(1 - (225 / 256 * 15 / 16 + 1 / 16) / 2)


def test_the_latency_of_a_token_is_littles_law():
    window = Window().add(generated(100, 4), 1.0).add(generated(200, 6), 2.0)
    assert window.token_latency_s() == pytest.approx(5 * 2.0 / 100)
    assert Window().add(generated(100, 4), 1.0).token_latency_s() is None
    assert window.next().add(generated(200, 6), 1.0).token_latency_s() is None  # no token
    assert window.next().add(generated(150, 6), 1.0).token_latency_s() is None  # a restart


def test_vegas_steps_by_the_share_of_the_length_that_queues():
    law = Vegas(low=0.25, high=0.5, step=0.1, alpha_min=0.5, round_trip_s=1.0)
    seen = [
        generated(0, 4),
        generated(400, 4),  # 10 ms a token: rtt0, no queue
        generated(500, 4),  # 40 ms: queue 1 x 0.75 -> 0.9
        generated(700, 4),  # 20 ms: queue 0.9 x 0.5 = 0.45, between the two
        generated(800, 4),  # 40 ms: queue 0.675 -> 0.8
        generated(900, 4),  # 0.6 -> 0.7
        generated(1000, 4),  # 0.525 -> 0.6
        generated(1100, 4),  # 0.45: stays
        generated(1900, 4),  # 5 ms: a new rtt0, no queue -> 0.7
        generated(2300, 4),  # 10 ms: queue 0.7 x 0.5 = 0.35, between the two
        generated(2300, 4),  # no token: unknown
        generated(2300, 0),
        generated(2300, 0),  # empty -> 0.8
    ]
    assert scales(law, seen, 1.0) == pytest.approx(
        [1, 1, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.7, 0.7, 0.7, 0.7, 0.8]
    )


def test_gradient2_follows_the_ratio_of_the_averages():
    law = Gradient2(tolerance=1.5, headroom=0.1, smoothing=0.2, long_periods=3, alpha_min=0.1)
    short_s = [0.01] * 10 + [0.04, 0.04, 0.01]
    tokens, seen = 0.0, [generated(0, 4)]
    for token_s in short_s:
        tokens += 4 / token_s
        seen.append(generated(round(tokens), 4))
    # The long average, 2 / (3 + 1) of the way: 0.025, 0.0325, 0.02125.
    after_first = 1 + 0.2 * (1.5 * 0.025 / 0.04 + 0.1 - 1)
    after_second = after_first  # the gradient is 1 again: 1.5 x 0.0325 > 0.04
    after_second += 0.2 * (after_first * 1 + 0.1 - after_first)
    found = scales(law, seen, 1.0)
    assert found[:11] == [1.0] * 11
    assert after_first > 1  # 0.9375 of the scale and 0.1 more: the headroom is not yet used up
    assert found[11:] == [1.0] * 3

    steep = Gradient2(tolerance=1.0, headroom=0.1, smoothing=0.2, long_periods=3, alpha_min=0.1)
    first = 1 + 0.2 * (0.025 / 0.04 + 0.1 - 1)
    second = first + 0.2 * (first * 0.0325 / 0.04 + 0.1 - first)
    # 0.02125 is more than twice 0.01: the gradient is 1, and the average comes down by 0.95.
    third = second + 0.2 * 0.1
    found = scales(steep, seen, 1.0)
    assert found[11:] == pytest.approx([first, second, third])


def test_gradient2_never_takes_more_than_half_at_once():
    law = Gradient2(tolerance=1.5, headroom=0.1, smoothing=1.0, long_periods=600, alpha_min=0.1)
    seen = [generated(0, 4), *[generated(400 * k, 4) for k in range(1, 12)], generated(4401, 4)]
    assert scales(law, seen, 1.0)[-2:] == pytest.approx([1.0, 1.0 * 0.5 + 0.1])


@pytest.mark.parametrize(
    ("law", "missing"),
    [
        (Aimd(10.0, 0.1, 0.5, 0.25, 1.0), "Aimd needs e2e_sum_s and e2e_count"),
        (Vegas(0.5, 0.75, 0.1, 0.25, 1.0), "Vegas needs generated_tokens_total"),
        (Gradient2(1.5, 0.1, 0.2, 600, 0.25), "Gradient2 needs generated_tokens_total"),
    ],
)
def test_what_a_law_cannot_do_without_is_named(law, missing):
    with pytest.raises(NotReported, match=f"the law {missing}, which this engine does not report"):
        law.update(law.start(), Observation(0.0, 0, 1), 1.0)


def test_wrong_ranges_are_refused():
    with pytest.raises(ConfigError, match=r"^decrease=1"):
        Aimd(10.0, 0.1, 1.0, 0.25, 1.0)
    with pytest.raises(ConfigError, match=r"^high=0.5: must be greater than low=0.5"):
        Vegas(0.5, 0.5, 0.1, 0.25, 1.0)
    with pytest.raises(ConfigError, match=r"^gain=0"):
        Dctcp(10, 0, 0.1, 0.25, 1.0)

"""Requests through two gateways, at a rate that any machine carries: none is lost, both agree."""

import pytest

from benchmarks.two_gateways import lags_s, run
from tests.store.servers import needs_redis


@pytest.mark.slow
@pytest.mark.alone
@needs_redis
async def test_no_request_is_lost_and_both_hand_out_the_same_levels() -> None:
    outcome = await run(rate=60.0, seconds=5.0)
    assert outcome.sent == outcome.answered == outcome.served == 300
    lags, _ = lags_s(outcome.levels)
    assert len(lags) >= 2
    for found in outcome.levels:  # the law only raises its level: neither goes back to an old one
        levels = [float(level) for _, level in found]
        assert levels == sorted(set(levels))


def test_a_lag_is_how_much_later_the_other_had_a_level() -> None:
    one = [(1.0, "0.1000"), (2.0, "0.2000"), (3.0, "0.3000")]
    other = [(1.5, "0.1000"), (2.25, "0.2000")]
    assert lags_s([one, other]) == ([0.5, 0.25], 1)

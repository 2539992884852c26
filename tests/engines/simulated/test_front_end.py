"""The front end: a delay for each request, before the engine has it."""

import asyncio
from random import Random
from statistics import mean, stdev

import pytest

from bellman.engines.simulated.front_end import FrontEnd
from tests.engines.simulated.test_simulated_engine import Caller, configured, run

SLOW = "engine.profile.front_end.mean_ms=100"
ALIKE = "engine.profile.front_end.variation=0"


def test_delays_have_the_mean_and_the_variation_that_are_asked_for() -> None:
    random = Random(1)
    delays_s = [FrontEnd(mean_ms=20, variation=0.5).delay_s(random) for _ in range(20_000)]
    assert mean(delays_s) == pytest.approx(0.020, rel=0.02)
    assert stdev(delays_s) / mean(delays_s) == pytest.approx(0.5, rel=0.05)
    assert min(delays_s) > 0
    assert FrontEnd(mean_ms=0, variation=0.5).delay_s(random) == 0


def test_the_delay_stands_before_the_first_token() -> None:
    async def scenario(caller: Caller) -> None:
        completion = await caller.send()
        prefill_s = configured().profile.time.seconds(500, 500 * 501 // 2, 0, 0)
        assert completion.first_token_s == pytest.approx(0.1 + prefill_s, abs=2e-6)
        assert caller.headers[0][0] == 0  # the signal does not wait for the tokenizer

    run(scenario, SLOW, ALIKE)


def test_a_request_in_the_front_end_is_outstanding() -> None:
    async def scenario(caller: Caller) -> None:
        answer = asyncio.create_task(caller.send())
        await asyncio.sleep(0.05)
        observation = (await caller.session.state()).observation
        assert observation is not None
        assert (observation.waiting, observation.running) == (1, 0)
        assert observation.outstanding_tokens == 500 + 100
        await answer
        observation = (await caller.session.state()).observation
        assert observation is not None
        assert (observation.outstanding, observation.outstanding_tokens) == (0, 0)

    run(scenario, SLOW, ALIKE)


def test_a_request_that_is_taken_back_in_the_front_end_never_reaches_the_engine() -> None:
    async def scenario(caller: Caller) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await caller.send()
        await asyncio.sleep(1)
        observation = (await caller.session.state()).observation
        assert observation is not None
        assert observation.outstanding == 0
        assert observation.prompt_tokens_total == 0

    run(scenario, SLOW, ALIKE)


def test_every_episode_has_the_same_delays() -> None:
    async def scenario(caller: Caller) -> list[float]:
        answers = await asyncio.gather(*(caller.send() for _ in range(5)))
        return [answer.first_token_s for answer in answers]

    varied = (SLOW, "engine.profile.front_end.variation=0.5")
    first, again = run(scenario, *varied), run(scenario, *varied)
    assert first == again
    assert len(set(first)) > 1

"""The engine as the experiment uses it: configured, in virtual time, through asyncio."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from bellman.admission.accept_all import AcceptAll
from bellman.admission.queue_limit import QueueLimit
from bellman.build import build
from bellman.controllers.base import Level
from bellman.controllers.bellman import QueueLaw
from bellman.engines.base import Completion, Control, EngineDied, Request, RequestFailed
from bellman.engines.simulated.engine import SimulatedEngine
from bellman.engines.simulated.profile import ExtrapolationWarning
from bellman.engines.simulated.session import SimulatedSession
from bellman.errors import ConfigError
from bellman.responses.base import Response
from bellman.sensing.observation import Observation

CONF = str(Path(__file__).parents[3] / "conf")


ALONE = ("+engine=simulated", "+prefix_caching=false")
AT_ONCE = "engine.profile.front_end.mean_ms=0"


def configured(*overrides: str) -> SimulatedEngine:
    with initialize_config_dir(CONF, version_base=None):
        config = compose(overrides=[*ALONE, AT_ONCE, *overrides])
    engine = build(config.engine, "engine")
    assert isinstance(engine, SimulatedEngine)
    return engine


class TenWords:
    kind = "ten words"

    def lookup(self, document_id: str, asked_words: int) -> Response:
        text = "one two three four five six seven eight nine ten"
        return Response(text=text, words=10, output_tokens=asked_words, finish_reason="stop")

    def count_tokens(self, text: str) -> int | None:
        return None


class Caller:
    """Sends requests and keeps what came back."""

    def __init__(self, session: SimulatedSession) -> None:
        self.session = session
        self.headers: list[tuple[float, Sequence[str]]] = []

    async def send(self, **fields: Any) -> Completion:
        asked = {"asked_words": 20, "max_tokens": 100, "prompt_tokens": 500}
        request = Request(request_id=0, document_id="d", prompt="", **(asked | fields))
        loop = asyncio.get_running_loop()
        return await self.session.generate(
            request, lambda values: self.headers.append((loop.time(), values))
        )


def run(
    scenario: Callable[[Caller], Awaitable[Any]],
    *overrides: str,
    admission: Any = AcceptAll(),  # noqa: B008
    controller: Any = QueueLaw(q_low=1, q_high=5, max_step=1),  # noqa: B008
) -> Any:
    engine = configured(*overrides).with_bank(TenWords())
    control = Control(controller, admission, period_s=1.0)

    async def episode() -> Any:
        async with engine.session(control) as session:
            return await scenario(Caller(session))

    with asyncio.Runner(loop_factory=engine.loop_factory) as runner:
        return runner.run(episode())


def test_an_answer_comes_from_the_bank_at_the_times_of_the_model() -> None:
    async def scenario(caller: Caller) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(1.25)
        completion = await caller.send()
        assert completion.output_tokens == 20
        assert completion.finish_reason == "stop"
        assert completion.text == "one two three four five six seven eight nine ten"
        time = configured().profile.time
        prefill_s = time.seconds(500, 500 * 501 // 2, 0, 0)
        decode_s = sum(time.seconds(0, 0, 1, 500 + token) for token in range(1, 20))
        assert completion.first_token_s == pytest.approx(1.25 + prefill_s, abs=1e-9)
        assert completion.last_token_s == pytest.approx(1.25 + prefill_s + decode_s, abs=1e-9)
        assert 0 <= loop.time() - completion.last_token_s <= 1e-6
        assert caller.headers == [(1.25, ["0.0000"])]

    run(scenario)


def test_the_header_comes_before_the_first_token_and_carries_the_level() -> None:
    async def scenario(caller: Caller) -> None:
        answers = [asyncio.create_task(caller.send(max_tokens=900, asked_words=900)) for _ in "123"]
        await asyncio.sleep(1.5)  # the law ran at 1 s and saw three requests: level (3 - 1) / 4
        assert not any(answer.done() for answer in answers)
        answers.append(asyncio.create_task(caller.send()))
        await asyncio.gather(*answers)
        assert caller.headers[-1] == (1.5, ["0.5000"])
        state = await caller.session.state()
        assert state.observation is not None and state.observation.completed_total == 4

    run(scenario)


def test_the_token_limit_cuts_the_answer() -> None:
    async def scenario(caller: Caller) -> None:
        completion = await caller.send(asked_words=20, max_tokens=10)
        assert completion.output_tokens == 10
        assert completion.finish_reason == "length"
        assert completion.text == "one two three four five"

    run(scenario)


def test_forced_lengths_have_no_text() -> None:
    async def scenario(caller: Caller) -> None:
        completion = await caller.send(forced_output_tokens=33, max_tokens=10)
        assert (completion.output_tokens, completion.text) == (33, None)

    run(scenario)


def test_a_refused_request_still_carries_the_signal() -> None:
    async def scenario(caller: Caller) -> None:
        first = asyncio.create_task(caller.send())
        await asyncio.sleep(0.001)
        with pytest.raises(RequestFailed, match="queue limit") as failure:
            await caller.send()
        assert failure.value.status == "rejected"
        assert len(caller.headers) == 2
        assert (await first).output_tokens == 20

    run(scenario, admission=QueueLimit(1))


@dataclass(frozen=True)
class BrokenLaw:
    name: str = "broken"

    def start(self) -> Level:
        return Level(0.0)

    def update(self, state: Level, observation: Observation, dt_s: float) -> Level:
        raise ZeroDivisionError("no such law")


def test_a_law_that_breaks_ends_the_episode() -> None:
    async def scenario(caller: Caller) -> None:
        with pytest.raises(EngineDied, match="no such law"):
            await caller.session.state()
        await caller.send()
        assert caller.headers[0][1] == []

    run(scenario, controller=BrokenLaw())


def test_a_request_that_never_fits_is_an_error_with_numbers() -> None:
    async def scenario(caller: Caller) -> None:
        with pytest.raises(RequestFailed, match=r"950 .* 100 .* 1000") as failure:
            await caller.send(prompt_tokens=950)
        assert failure.value.status == "error"

    run(scenario, "engine.max_model_len=1000")


def test_a_client_that_gives_up_frees_the_engine() -> None:
    async def scenario(caller: Caller) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await caller.send(asked_words=900, max_tokens=900)
        await asyncio.sleep(0.1)
        load = (await caller.session.state()).observation
        assert load is not None
        assert (load.outstanding, load.kv_usage, load.completed_total) == (0, 0.0, 0)

    run(scenario)


def test_energy_is_readable_at_any_instant_and_grows_evenly_within_a_step() -> None:
    async def scenario(caller: Caller) -> None:
        await asyncio.sleep(1.0)
        meter = caller.session.energy_meter()
        await meter.start()
        answer = asyncio.create_task(caller.send(prompt_tokens=8000))
        readings = []
        for _ in range(4):  # within the prefill step of some 200 ms
            readings.append((await meter.read()).energy_j)
            await asyncio.sleep(0.03)
        steps = [b - a for a, b in pairwise(readings)]
        assert steps == pytest.approx([steps[0]] * 3)
        assert 100 < steps[0] / 0.03 <= configured().profile.energy.power_limit_w
        await answer
        report = await meter.stop()
        assert (report.method, report.source) == ("modelled", "simulated")

    run(scenario)


def test_a_prefix_that_is_known_shortens_the_prefill() -> None:
    async def scenario(caller: Caller) -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        waits = []
        for _ in range(2):
            start_s = loop.time()
            completion = await caller.send(prompt_tokens=6000, hash_ids=tuple(range(12)))
            waits.append(completion.first_token_s - start_s)
        return waits[0], waits[1]

    without = run(scenario)
    assert without[0] == pytest.approx(without[1], abs=2e-6)
    cached = run(scenario, "engine.enable_prefix_caching=true")
    assert cached[0] == pytest.approx(without[0], abs=2e-6)
    assert cached[1] < 0.2 * cached[0]


def test_the_important_request_goes_first() -> None:
    async def scenario(caller: Caller) -> list[float]:
        sent = [caller.send(prompt_tokens=8000, priority=priority) for priority in (0, 2, 1)]
        return [completion.first_token_s for completion in await asyncio.gather(*sent)]

    first, second, third = run(scenario)
    assert first < second < third
    first, second, third = run(scenario, "engine.scheduling_policy=priority")
    assert first < third < second


def test_leaving_the_range_of_the_fit_warns() -> None:
    async def scenario(caller: Caller) -> None:
        await asyncio.gather(caller.send(), caller.send())

    with pytest.warns(ExtrapolationWarning, match="not fitted on more than 1 sequences"):
        run(scenario, "engine.profile.fitted.sequences=1")


def test_sessions_do_not_share_anything() -> None:
    engine = configured().with_bank(TenWords())
    control = Control(QueueLaw(q_low=1, q_high=5, max_step=1), AcceptAll(), period_s=1.0)

    async def episode() -> float:
        async with engine.session(control) as session:
            return (await Caller(session).send()).last_token_s

    def once() -> float:
        with asyncio.Runner(loop_factory=engine.loop_factory) as runner:
            return runner.run(episode())

    assert once() == once()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("engine.max_num_seqs=0", r"engine\.max_num_seqs=0"),
        ("engine.max_num_batched_tokens=100", r"engine\.max_num_batched_tokens=100: .*1024"),
        ("engine.scheduling_policy=lifo", r"scheduling_policy=lifo: must be fcfs or priority"),
        ("engine.kv_blocks=10", r"engine\.max_model_len=\d+: must fit"),
        ("engine.profile.time.floor_ms=0", r"engine\.profile\.time\.floor_ms=0"),
        ("engine.profile.energy.idle_w=-1", r"engine\.profile\.energy\.idle_w=-1"),
        ("engine.profile.energy.power_limit_w=50", r"power_limit_w=50.*idle_w"),
        ("+engine.profile.energy.idel_w=1", r"engine\.profile\.energy\.idel_w=1: unknown key"),
    ],
)
def test_a_wrong_value_names_its_key(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        configured(override)

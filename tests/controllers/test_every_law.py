"""What holds for the law of every arm in conf/arm: a new one is tested by being there."""

import math
from dataclasses import asdict, is_dataclass
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellman.controllers.none import NoControl
from bellman.controllers.state import read_state, write_state
from bellman.engines.simulated.scheduler import Scheduler
from bellman.engines.simulated.sequence import Sequence
from bellman.sensing.failure import NotReported
from bellman.sensing.numbers import LARGEST
from bellman.sensing.observation import Observation
from bellman.settings import read_settings
from tests.controllers.observed import ObservedEngine, levels
from tests.experiments.conftest import CONF, read_config

NAMES = sorted(path.stem for path in (CONF / "arm").glob("*.yaml"))
SETTINGS = read_settings(read_config(f"arm=[{','.join(NAMES)}]"))
LAWS = {name: arm.control.controller for name, arm in SETTINGS.arms.items()}
DRIVEN = {name: law for name, law in LAWS.items() if not isinstance(law, NoControl)}
"""Those that do something under congestion."""
every_law = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
every_driven_law = pytest.mark.parametrize("law", DRIVEN.values(), ids=DRIVEN)

COUNTS = st.none() | st.sampled_from([0, 1, LARGEST]) | st.integers(0, 100_000)
AMOUNTS = st.none() | st.sampled_from([0.0, 1e-300, float(LARGEST)]) | st.floats(0.0, 1e6)
REQUESTS = st.sampled_from([0, 1, LARGEST]) | st.integers(0, 10_000)


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    """Any finite numbers in any order: counters that go back, delays of nobody, things unknown."""
    counts = [draw(COUNTS) for _ in range(7)]
    amounts = [draw(AMOUNTS) for _ in range(5)]
    return Observation(
        time_s=draw(st.floats(0.0, 1e6)),
        waiting=draw(REQUESTS),
        running=draw(REQUESTS),
        kv_usage=draw(st.none() | st.floats(0.0, 1.0)),
        prompt_tokens_total=counts[0],
        generated_tokens_total=counts[1],
        preemptions_total=counts[2],
        completed_total=counts[3],
        queue_delay_count=counts[4],
        ttft_count=counts[5],
        e2e_count=counts[6],
        outstanding_tokens=amounts[0],
        oldest_waiting_s=amounts[1],
        queue_delay_sum_s=amounts[2],
        ttft_sum_s=amounts[3],
        e2e_sum_s=amounts[4],
    )


def numbers(value: object) -> list[float]:
    """Return every number inside a state."""
    if isinstance(value, dict):
        return [number for entry in value.values() for number in numbers(entry)]
    if isinstance(value, list | tuple):
        return [number for entry in value for number in numbers(entry)]
    return [value] if isinstance(value, int | float) else []


@settings(max_examples=40)
@given(
    seen=st.lists(observations(), min_size=1, max_size=8),
    dt_s=st.sampled_from([1e-3, 0.5, 1.0, 30.0, 1e5]),
)
def test_any_finite_load_gives_a_level_or_names_what_is_missing(seen, dt_s):
    for name, law in LAWS.items():
        state = law.start()
        assert state.level == 0, name
        for observation in seen:
            try:
                state = law.update(state, observation, dt_s)
            except NotReported as missing:
                assert "not report" in str(missing)
                assert "\n" not in str(missing)
            assert 0 <= state.level <= 1, name
            assert is_dataclass(state), name
            assert all(math.isfinite(number) for number in numbers(asdict(state))), name


@every_law
@pytest.mark.parametrize("outstanding", [0, 1, 15, 40])
def test_a_calm_engine_is_never_told_to_be_congested(law, outstanding):
    engine = ObservedEngine()
    calm = (engine.observe(outstanding) for _ in range(120))
    assert set(levels(law, calm)) == {0.0}


@pytest.fixture(scope="module")
def calm_services():
    """Return what the default engine shows at half its capacity, from the start on, by seeds."""
    engine = SETTINGS.engine

    def serve(random: Random) -> list[Observation]:
        scheduler = Scheduler(engine.limits, engine.profile, lambda _: None)
        arrival_s, seen = random.expovariate(6.5), []
        for second in range(20):
            while arrival_s < second:
                tokens = max(1, round(random.lognormvariate(5.9, 0.55)))  # 420 on average
                scheduler.add(Sequence(1000, tokens, 1000), arrival_s)
                arrival_s += random.expovariate(6.5)
            seen.append(scheduler.observe(float(second)))
        return seen

    return [serve(Random(seed)) for seed in range(10)]


@every_law
def test_a_service_that_starts_calmly_is_never_told_to_be_congested(law, calm_services):
    for seed, service in enumerate(calm_services):
        assert set(levels(law, iter(service))) == {0.0}, seed


@every_law
def test_a_law_is_pure(law):
    def run():
        engine = ObservedEngine()
        return levels(law, (engine.observe(load) for load in range(0, 900, 9)))

    assert run() == run()


@every_law
def test_another_process_goes_on_from_a_state_that_was_written_down(law):
    engine, state = ObservedEngine(), law.start()
    for load in range(0, 900, 30):
        found = read_state(law, write_state(state))
        assert found == state
        observation = engine.observe(load)
        state = law.update(state, observation, 1.0)
        assert law.update(found, observation, 1.0) == state


@every_law
@pytest.mark.parametrize("text", ["", "{", "null", "[]", '{"level": "much"}', '{"other": 1}'])
def test_what_is_no_state_of_a_law_is_its_start(law, text):
    assert read_state(law, text) == law.start()


@every_driven_law
def test_congestion_raises_the_level_and_its_end_takes_it_back_to_nothing(law):
    engine = ObservedEngine()
    loads = [20] * 60 + [900] * 120 + [20] * 1500
    found = levels(law, (engine.observe(load) for load in loads))
    assert set(found[:60]) == {0.0}
    assert max(found[60:180]) > 0.15  # enough for the next rung of the ladder
    assert found[-1] == 0.0


@every_driven_law
def test_an_engine_that_was_left_empty_is_not_congested(law):
    engine = ObservedEngine()
    loads = [20] * 60 + [900] * 120 + [0] * 1500
    assert levels(law, (engine.observe(load) for load in loads))[-1] == 0.0

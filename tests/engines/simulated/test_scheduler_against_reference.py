"""The closed-form scheduler equals the plain step-by-step one: tokens, steps, joules, load."""

from bisect import bisect_right

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellman.engines.simulated.scheduler import Scheduler
from bellman.engines.simulated.segment import Limits
from bellman.sensing.observation import Observation
from tests.engines.simulated.loads import PROFILE, limits, loads, replay, run_scheduler
from tests.engines.simulated.reference_engine import Job, Run, Step, run_reference

TIME_S = 1e-9


@settings(deadline=None, max_examples=80)
@given(jobs=loads(), limits=limits())
def test_every_token_and_every_step_is_the_same(jobs: list[Job], limits: Limits) -> None:
    reference = run_reference(jobs, limits, PROFILE)
    outcome = run_scheduler(jobs, limits)

    ends_s = outcome.log.step_ends_s()
    assert ends_s == pytest.approx([step.end_s for step in reference.steps], abs=TIME_S)
    joules = sum(segment.joules for segment in outcome.log.segments)
    assert joules == pytest.approx(sum(step.joules for step in reference.steps), rel=1e-9)
    for state, sequence in zip(reference.states, outcome.sequences, strict=True):
        if sequence in outcome.finished:
            times_s = outcome.log.token_times_s(sequence)
            assert times_s == pytest.approx(state.token_times_s, abs=TIME_S)
            assert (sequence.first_token_s, sequence.last_token_s) == (times_s[0], times_s[-1])
        else:
            assert sequence.generated == len(state.token_times_s) < sequence.output_tokens
        assert sequence.preemptions == state.preemptions


@settings(deadline=None, max_examples=80)
@given(
    jobs=loads(aborts=False),
    limits=limits(),
    times=st.lists(st.floats(0.0, 4.0), min_size=1, max_size=8),
)
def test_load_and_energy_at_any_instant_are_the_same(
    jobs: list[Job], limits: Limits, times: list[float]
) -> None:
    reference = run_reference(jobs, limits, PROFILE)
    ends_s = [step.end_s for step in reference.steps]

    def check(time_s: float, scheduler: Scheduler) -> None:
        if min(abs(time_s - edge) for step in reference.steps for edge in edges(step)) < TIME_S:
            return  # on an edge, rounding decides which side is seen
        observation = scheduler.observe(time_s)
        done = bisect_right(ends_s, time_s)
        step = reference.steps[done] if done < len(ends_s) else None
        inside = step is not None and step.start_s < time_s
        assert observation.running == (step.running if inside else 0)
        assert observation.kv_usage * limits.kv_blocks == pytest.approx(
            step.blocks if inside else 0
        )
        tokens = [sum(t <= time_s for t in state.token_times_s) for state in reference.states]
        assert observation.generated_tokens_total == sum(tokens)
        arrived = sum(job.arrival_s <= time_s for job in jobs)
        finished = sum(n == job.output_tokens for n, job in zip(tokens, jobs, strict=True))
        assert observation.completed_total == finished
        assert observation.outstanding == arrived - finished
        check_delays(observation, jobs, reference)
        energy_j = busy_s = 0.0
        for past in reference.steps:
            share = min(1.0, max(0.0, time_s - past.start_s) / (past.end_s - past.start_s))
            energy_j += share * past.joules
            busy_s += share * (past.end_s - past.start_s)
        energy_j += PROFILE.idle_w * (time_s - busy_s)
        assert scheduler.energy_j(time_s) == pytest.approx(energy_j, rel=1e-9)

    replay(jobs, limits, dict.fromkeys(times, check))


def check_delays(observation: Observation, jobs: list[Job], reference: Run) -> None:
    admitted_s: dict[int, float] = {}
    for step in reference.steps:
        for number in step.admitted:
            admitted_s.setdefault(number, step.start_s)
    ttft_s, queue_delay_s, e2e_s = [], [], []
    for number, (job, state) in enumerate(zip(jobs, reference.states, strict=True)):
        if state.token_times_s[0] <= observation.time_s:
            ttft_s.append(state.token_times_s[0] - job.arrival_s)
        if state.token_times_s[-1] <= observation.time_s:
            e2e_s.append(state.token_times_s[-1] - job.arrival_s)
            queue_delay_s.append(admitted_s[number] - job.arrival_s)
    assert observation.ttft_sum_s == pytest.approx(sum(ttft_s), abs=TIME_S)
    assert observation.e2e_sum_s == pytest.approx(sum(e2e_s), abs=TIME_S)
    assert observation.queue_delay_sum_s == pytest.approx(sum(queue_delay_s), abs=TIME_S)
    assert observation.ttft_count == len(ttft_s)
    assert observation.e2e_count == observation.queue_delay_count == len(e2e_s)


def edges(step: Step) -> tuple[float, float]:
    return step.start_s, step.end_s

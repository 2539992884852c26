"""What must hold for every load, checked without the reference engine."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellman.engines.simulated.scheduler import Scheduler
from bellman.engines.simulated.segment import Limits
from tests.engines.simulated.loads import PROFILE, limits, loads, replay, run_scheduler
from tests.engines.simulated.reference_engine import Job

RANDOM_LOADS = settings(deadline=None, max_examples=80)


@RANDOM_LOADS
@given(jobs=loads(), limits=limits())
def test_everything_asked_is_generated_and_everything_taken_is_given_back(
    jobs: list[Job], limits: Limits
) -> None:
    outcome = run_scheduler(jobs, limits)
    end = outcome.scheduler.observe(outcome.end_s)
    assert end.kv_usage == 0
    assert end.waiting == end.running == end.outstanding_tokens == 0
    assert end.completed_total == len(outcome.finished)
    assert end.generated_tokens_total == sum(s.generated for s in outcome.sequences)
    assert end.preemptions_total == sum(s.preemptions for s in outcome.sequences)
    for job, sequence in zip(jobs, outcome.sequences, strict=True):
        assert (sequence in outcome.finished) or job.abort_s is not None
        if sequence in outcome.finished:
            assert sequence.generated == job.output_tokens
            assert len(outcome.log.token_times_s(sequence)) == job.output_tokens
    if all(job.abort_s is None for job in jobs):
        assert end.prompt_tokens_total == sum(job.prompt_tokens for job in jobs)


@RANDOM_LOADS
@given(jobs=loads(), limits=limits(), times=st.lists(st.floats(0.0, 4.0), max_size=20))
def test_load_stays_within_limits_and_counters_never_go_back(
    jobs: list[Job], limits: Limits, times: list[float]
) -> None:
    seen: list[tuple[float, ...]] = []

    def look(time_s: float, scheduler: Scheduler) -> None:
        now = scheduler.observe(time_s)
        assert now.kv_usage is not None and 0 <= now.kv_usage <= 1
        assert 0 <= now.running <= limits.max_num_seqs
        assert now.waiting >= 0
        assert now.outstanding_tokens is not None and now.outstanding_tokens >= 0
        counters = (
            scheduler.energy_j(time_s),
            float(now.generated_tokens_total or 0),
            float(now.prompt_tokens_total or 0),
            float(now.preemptions_total or 0),
            float(now.completed_total or 0),
        )
        if seen:
            assert all(a <= b for a, b in zip(seen[-1], counters, strict=True))
        seen.append(counters)

    outcome = replay(jobs, limits, dict.fromkeys(times, look))
    last_s = 0.0
    for segment in outcome.log.segments:
        assert segment.start_s >= last_s
        assert 0 < segment.prefill_tokens + segment.sequences <= limits.max_num_batched_tokens
        assert list(segment.step_ends_s) == sorted(segment.step_ends_s)
        seconds = segment.step_ends_s[-1] - segment.start_s
        assert PROFILE.idle_w * seconds < segment.joules
        assert segment.joules <= PROFILE.energy.power_limit_w * seconds * (1 + 1e-9)
        last_s = segment.step_ends_s[-1]


@RANDOM_LOADS
@given(jobs=loads(), limits=limits(), times=st.lists(st.floats(0.0, 4.0), max_size=20))
def test_looking_changes_nothing(jobs: list[Job], limits: Limits, times: list[float]) -> None:
    def look(time_s: float, scheduler: Scheduler) -> None:
        scheduler.observe(time_s)
        scheduler.energy_j(time_s)

    watched = replay(jobs, limits, dict.fromkeys(times, look))
    alone = run_scheduler(jobs, limits)
    assert [s.last_token_s for s in watched.sequences] == [s.last_token_s for s in alone.sequences]


@RANDOM_LOADS
@given(jobs=loads(aborts=False), limits=limits())
def test_first_come_first_served(jobs: list[Job], limits: Limits) -> None:
    outcome = run_scheduler(jobs, limits)
    first_tokens_s = [sequence.first_token_s for sequence in outcome.sequences]
    if not any(sequence.preemptions for sequence in outcome.sequences):
        assert first_tokens_s == sorted(first_tokens_s)
    assert all(s.last_token_s >= s.first_token_s > s.arrival_s for s in outcome.sequences)


@RANDOM_LOADS
@given(jobs=loads(aborts=False), limits=limits())
def test_preemption_changes_when_but_not_what(jobs: list[Job], limits: Limits) -> None:
    starved = run_scheduler(jobs, limits)
    roomy = run_scheduler(
        jobs,
        Limits(limits.max_num_seqs, limits.max_num_batched_tokens, 10_000, limits.block_size),
    )
    assert sum(sequence.preemptions for sequence in roomy.sequences) == 0
    for one, other in zip(starved.sequences, roomy.sequences, strict=True):
        assert one.generated == other.generated


@RANDOM_LOADS
@given(jobs=loads(aborts=False), limits=limits())
def test_littles_law(jobs: list[Job], limits: Limits) -> None:
    """Mean load x time = sum of times in system, with the load from observations alone."""
    outcome = run_scheduler(jobs, limits)
    edges_s = sorted(
        {s.arrival_s for s in outcome.sequences} | {s.last_token_s for s in outcome.sequences}
    )
    loads_seen: list[tuple[float, int]] = []

    def look(time_s: float, scheduler: Scheduler) -> None:
        loads_seen.append((time_s, scheduler.observe(time_s).outstanding))

    middles_s = [(a + b) / 2 for a, b in pairwise(edges_s)]
    replay(jobs, limits, dict.fromkeys(middles_s, look))
    area_s = sum(
        load * (b - a) for (_, load), (a, b) in zip(loads_seen, pairwise(edges_s), strict=True)
    )
    in_system_s = sum(s.last_token_s - s.arrival_s for s in outcome.sequences)
    assert area_s == pytest.approx(in_system_s, rel=1e-9)

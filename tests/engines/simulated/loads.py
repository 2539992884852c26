"""Profiles, random loads and a driver that puts a load through the scheduler."""

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from bellman.engines.simulated.front_end import FrontEnd
from bellman.engines.simulated.profile import FittedRange, Profile
from bellman.engines.simulated.scheduler import Scheduler
from bellman.engines.simulated.segment import Limits
from bellman.engines.simulated.sequence import Sequence
from bellman.engines.simulated.step_energy import StepEnergy
from bellman.engines.simulated.step_log import StepLog
from bellman.engines.simulated.step_time import StepTime
from tests.engines.simulated.reference_engine import Job

PROFILE = Profile(
    model="test",
    devices="1 x test",
    source="invented",
    kv_blocks=1000,
    front_end=FrontEnd(mean_ms=0, variation=0),
    time=StepTime(
        floor_ms=6.5,
        token_ms=0.02,
        pair_ms=1e-6,
        kv_token_ms=4e-3,  # a hundred times an H100's, so that the growth of a run matters
        sequence_ms=0.004,
        overhead_factor=1.1,
        host_ms=0.2,
        host_sequence_ms=0.04,
        host_half_sequences=50,
    ),
    energy=StepEnergy(
        idle_w=90,
        power_limit_w=650,  # crossed within runs
        step_j=2.5,
        prefill_token_j=0.012,
        sequence_j=0.04,
        kv_token_j=3e-3,
    ),
    fitted=FittedRange(sequences=100, kv_tokens=10_000, prefill_tokens=1000),
)


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    """Small engines, most of them short of blocks."""
    max_num_seqs = draw(st.integers(1, 12))
    block_size = draw(st.sampled_from([1, 4, 16]))
    return Limits(
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=draw(st.integers(max_num_seqs, 150)),
        kv_blocks=-(-draw(st.integers(161, 700)) // block_size),  # holds any one job
        block_size=block_size,
    )


@st.composite
def loads(draw: st.DrawFn, aborts: bool = True) -> list[Job]:
    """Up to 25 requests, from a burst to far apart, some of them at the same instant."""
    gap_s = draw(st.sampled_from([0.0, 0.005, 0.05, 0.5]))
    jobs = []
    arrival_s = 0.0
    for _ in range(draw(st.integers(1, 25))):
        arrival_s += draw(st.sampled_from([0.0, 1.0])) * draw(
            st.floats(0.0, 2 * gap_s, allow_subnormal=False)
        )
        abort_after_s = draw(st.none() | st.floats(0.0, 2.0)) if aborts else None
        jobs.append(
            Job(
                arrival_s,
                prompt_tokens=draw(st.integers(1, 100)),
                output_tokens=draw(st.integers(1, 60)),
                abort_s=None if abort_after_s is None else arrival_s + abort_after_s,
            )
        )
    return jobs


@dataclass
class Outcome:
    """A load that went through the scheduler."""

    scheduler: Scheduler
    sequences: list[Sequence]
    finished: list[Sequence]
    log: StepLog
    end_s: float


Look = Callable[[float, Scheduler], None]


def replay(jobs: list[Job], limits: Limits, looks: dict[float, Look], **options: bool) -> Outcome:
    """Put a load through the scheduler to its end, and look at it on the way."""
    log, finished = StepLog(), []
    scheduler = Scheduler(limits, PROFILE, finished.append, log=log, **options)
    sequences = [
        Sequence(job.prompt_tokens, job.output_tokens, 60, job.priority, list(job.block_hashes))
        for job in jobs
    ]
    events: list[tuple[float, int, int]] = []
    for number, job in enumerate(jobs):
        events.append((job.arrival_s, 0, number))
        if job.abort_s is not None:
            events.append((job.abort_s, 1, number))
    events += [(time_s, 2, 0) for time_s in looks]
    for time_s, kind, number in sorted(events):
        if kind == 0:
            scheduler.add(sequences[number], time_s)
        elif kind == 1:
            scheduler.abort(sequences[number], time_s)
        else:
            looks[time_s](time_s, scheduler)
    end_s = max(time_s for time_s, _, _ in events)
    while scheduler.next_event_s is not None:
        end_s = max(end_s, scheduler.next_event_s)
        scheduler.advance(end_s)
        scheduler.start()
    return Outcome(scheduler, sequences, finished, log, end_s)


def run_scheduler(jobs: list[Job], limits: Limits) -> Outcome:
    """Put a load through the scheduler to its end."""
    return replay(jobs, limits, {})

"""Schedules small enough to work out by hand: 10 ms a step, 1 J a step, idle at 50 W."""

from dataclasses import dataclass

import pytest

from bellman.engines.simulated.scheduler import Scheduler
from bellman.engines.simulated.segment import Limits
from bellman.engines.simulated.sequence import Sequence
from bellman.engines.simulated.step_log import StepLog, weighted_percentile


@dataclass(frozen=True)
class ConstantSteps:
    def seconds(self, steps: int) -> float:
        return 0.01 * steps

    def joules(self, steps: int) -> float:
        return 1.0 * steps


@dataclass(frozen=True)
class ConstantPerformance:
    idle_w: float = 50.0

    def steps(self, *composition: int) -> ConstantSteps:
        return ConstantSteps()


class Bench:
    def __init__(self, **limits: int) -> None:
        sizes = {
            "max_num_seqs": 8,
            "max_num_batched_tokens": 100,
            "kv_blocks": 100,
            "block_size": 16,
        }
        self.finished: list[Sequence] = []
        self.log = StepLog()
        self.scheduler = Scheduler(
            Limits(**(sizes | limits)), ConstantPerformance(), self.finished.append, log=self.log
        )

    def run(self) -> None:
        while self.scheduler.next_event_s is not None:
            self.scheduler.advance(self.scheduler.next_event_s)
            self.scheduler.start()


def test_the_step_that_completes_a_prefill_brings_the_first_token() -> None:
    bench = Bench()
    sequence = Sequence(prompt_tokens=50, output_tokens=5, token_limit=5)
    bench.scheduler.add(sequence, 1.0)
    bench.run()
    assert sequence.first_token_s == pytest.approx(1.01)
    assert sequence.last_token_s == pytest.approx(1.05)
    assert bench.log.token_times_s(sequence) == pytest.approx([1.01, 1.02, 1.03, 1.04, 1.05])


def test_a_prompt_longer_than_the_budget_is_cut_into_chunks_and_holds_back_the_next() -> None:
    bench = Bench()
    long, short = Sequence(250, 1, 1), Sequence(50, 1, 1)
    bench.scheduler.add(long, 0.0)
    bench.scheduler.add(short, 0.0)
    bench.run()
    assert [s.prefill_tokens for s in bench.log.segments] == [100, 100, 100]  # 50 + 50 at last
    assert long.last_token_s == pytest.approx(0.03)
    assert short.last_token_s == pytest.approx(0.03)


def test_decoding_sequences_take_their_token_of_the_budget_first() -> None:
    bench = Bench()
    bench.scheduler.add(Sequence(10, 50, 50), 0.0)
    bench.scheduler.add(Sequence(150, 1, 1), 0.005)
    bench.run()
    assert [s.prefill_tokens for s in bench.log.segments[:3]] == [10, 99, 51]


def test_an_arrival_joins_the_step_that_begins_at_its_instant() -> None:
    bench = Bench()
    bench.scheduler.add(Sequence(10, 100, 100), 0.0)
    second, third = Sequence(10, 1, 1), Sequence(10, 1, 1)
    bench.scheduler.add(second, 0.025)
    bench.scheduler.add(third, 0.03)
    bench.run()
    assert second.first_token_s == third.first_token_s == pytest.approx(0.04)


def test_the_first_that_does_not_fit_blocks_those_behind_it() -> None:
    bench = Bench(kv_blocks=10)
    running, large, small = Sequence(64, 20, 20), Sequence(100, 1, 1), Sequence(16, 1, 1)
    for sequence in (running, large, small):
        bench.scheduler.add(sequence, 0.0)
    bench.run()
    assert running.last_token_s == pytest.approx(0.20)  # 4 of 10 blocks, 7 needed by the second
    assert large.first_token_s == pytest.approx(0.21)  # its 100 tokens fill the step
    assert small.first_token_s == pytest.approx(0.22)


def test_the_last_running_is_preempted_and_recomputes_what_it_generated() -> None:
    bench = Bench(kv_blocks=4, max_num_batched_tokens=64)
    first, last = Sequence(30, 20, 20), Sequence(31, 20, 20)
    bench.scheduler.add(first, 0.0)
    bench.scheduler.add(last, 0.0)
    bench.run()
    # After the first step both hold 2 blocks of 4. `first` needs a third for its token 33, in the
    # fourth step; `last` for its token 33, in the third: that step preempts it, with 2 tokens out.
    assert (first.preemptions, last.preemptions) == (0, 1)
    assert first.last_token_s == pytest.approx(0.20)
    # 33 known tokens need 3 blocks: not before `first` is done; then 18 tokens are left.
    assert bench.log.token_times_s(last)[:4] == pytest.approx([0.01, 0.02, 0.21, 0.22])
    assert last.last_token_s == pytest.approx(0.38)
    assert bench.log.gaps_s == pytest.approx([0.19])
    assert bench.scheduler.observe(1.0).generated_tokens_total == 40
    assert bench.scheduler.observe(1.0).prompt_tokens_total == 61


def test_delays_are_those_of_the_requests() -> None:
    bench = Bench(max_num_seqs=1)
    bench.scheduler.add(Sequence(10, 3, 3), 1.0)  # in the batch at once, done at 1.03
    bench.scheduler.add(Sequence(10, 2, 2), 1.005)  # in at 1.03, done at 1.05
    bench.scheduler.add(Sequence(10, 2, 2), 1.015)
    waiting = bench.scheduler.observe(1.025)
    assert waiting.oldest_waiting_s == pytest.approx(0.02)
    assert (waiting.ttft_sum_s, waiting.ttft_count) == (pytest.approx(0.01), 1)
    assert (waiting.e2e_sum_s, waiting.e2e_count) == (0, 0)
    assert (waiting.queue_delay_sum_s, waiting.queue_delay_count) == (0, 0)
    second = bench.scheduler.observe(1.055)
    assert second.queue_delay_sum_s == pytest.approx(0 + 0.025)  # that of the third is not told yet
    assert second.queue_delay_count == second.e2e_count == 2
    assert second.e2e_sum_s == pytest.approx(0.03 + 0.045)
    assert second.oldest_waiting_s == 0
    end = bench.scheduler.observe(2.0)
    assert end.ttft_sum_s == pytest.approx(0.01 + 0.035 + 0.045)
    assert end.queue_delay_sum_s == pytest.approx(0.025 + 0.035)
    assert (end.ttft_count, end.e2e_count, end.completed_total) == (3, 3, 3)


def test_one_that_is_taken_back_delays_nobody_and_is_in_no_total() -> None:
    bench = Bench(max_num_seqs=1)
    bench.scheduler.add(Sequence(10, 9, 9), 0.0)
    oldest, younger = Sequence(10, 9, 9), Sequence(10, 9, 9)
    bench.scheduler.add(oldest, 0.01)
    bench.scheduler.add(younger, 0.02)
    bench.scheduler.abort(oldest, 0.03)
    assert bench.scheduler.observe(0.05).oldest_waiting_s == pytest.approx(0.03)
    end = bench.scheduler.observe(1.0)
    assert (end.ttft_count, end.e2e_count) == (2, 2)


def test_who_has_waited_longest_need_not_be_the_next() -> None:
    scheduler = Scheduler(
        Limits(1, 100, 100, 16), ConstantPerformance(), lambda _: None, by_priority=True
    )
    scheduler.add(Sequence(10, 9, 9), 0.0)
    scheduler.add(Sequence(10, 9, 9, priority=5), 0.02)
    scheduler.add(Sequence(10, 9, 9, priority=1), 0.03)
    assert scheduler.observe(0.05).oldest_waiting_s == pytest.approx(0.03)
    assert scheduler.observe(0.15).oldest_waiting_s == pytest.approx(0.13)  # it still waits


def test_aborting_frees_the_blocks_at_the_end_of_the_step() -> None:
    bench = Bench()
    sequence = Sequence(32, 50, 50)
    bench.scheduler.add(sequence, 0.0)
    bench.scheduler.abort(sequence, 0.103)
    assert bench.scheduler.observe(0.109).running == 1
    assert bench.scheduler.observe(0.111).running == 0
    assert bench.scheduler.observe(0.111).kv_usage == 0
    assert bench.scheduler.observe(0.111).outstanding_tokens == 0
    assert sequence.generated == 11
    assert not bench.finished


def test_aborting_the_one_that_blocks_lets_the_next_in() -> None:
    bench = Bench(kv_blocks=10)
    running, large, small = Sequence(64, 90, 90), Sequence(120, 1, 1), Sequence(16, 1, 1)
    for sequence in (running, large, small):
        bench.scheduler.add(sequence, 0.0)
    bench.scheduler.abort(large, 0.105)
    bench.run()
    assert small.first_token_s == pytest.approx(0.12)
    assert large.first_token_s < 0


def test_energy_is_spread_evenly_over_a_step_and_idle_time_costs_idle_watts() -> None:
    bench = Bench()
    bench.scheduler.add(Sequence(10, 10, 10), 1.0)
    assert bench.scheduler.energy_j(1.0) == pytest.approx(50.0)
    assert bench.scheduler.energy_j(1.025) == pytest.approx(50.0 + 2.5)
    assert bench.scheduler.energy_j(2.0) == pytest.approx(50.0 + 10.0 + 0.9 * 50.0)


def test_outstanding_tokens_count_prompts_to_compute_and_the_limit_of_the_output() -> None:
    bench = Bench()
    bench.scheduler.add(Sequence(10, 10, 40), 0.0)
    assert bench.scheduler.observe(0.0).outstanding_tokens == 50
    assert bench.scheduler.observe(0.015).outstanding_tokens == 39  # its first token is out
    assert bench.scheduler.observe(0.055).outstanding_tokens == 35
    assert bench.scheduler.observe(1.0).outstanding_tokens == 0


def test_inter_token_latencies_count_every_token_once() -> None:
    bench = Bench()
    for _ in range(3):
        bench.scheduler.add(Sequence(10, 21, 21), 0.0)
    bench.run()
    values, weights = bench.log.inter_token_latencies_s()
    assert weights.sum() == 60
    assert weighted_percentile(values, weights, 50) == pytest.approx(0.01)

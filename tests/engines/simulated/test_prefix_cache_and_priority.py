"""Prefix caching and priorities: equal to block-by-block references, and hits by hand."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellman.engines.simulated.prefix_cache import (
    PrefixCachingBlocks,
    block_hashes,
    document_hashes,
)
from bellman.engines.simulated.segment import Limits
from bellman.engines.simulated.sequence import Sequence
from tests.engines.simulated.loads import PROFILE, Outcome, limits, loads, replay
from tests.engines.simulated.reference_engine import CachingReference, Job, ReferenceEngine, Run


def same(outcome: Outcome, reference: Run) -> None:
    ends_s = [step.end_s for step in reference.steps]
    assert outcome.log.step_ends_s() == pytest.approx(ends_s, abs=1e-9)
    for state, sequence in zip(reference.states, outcome.sequences, strict=True):
        assert sequence.preemptions == state.preemptions
        if sequence in outcome.finished:
            assert sequence.last_token_s == pytest.approx(state.token_times_s[-1], abs=1e-9)


@settings(deadline=None, max_examples=80)
@given(jobs=loads(), limits=limits(), data=st.data())
def test_priorities_equal_the_reference(
    jobs: list[Job], limits: Limits, data: st.DataObject
) -> None:
    numbers = data.draw(st.lists(st.integers(0, 2), min_size=len(jobs), max_size=len(jobs)))
    jobs = [replace(job, priority=number) for job, number in zip(jobs, numbers, strict=True)]
    reference = ReferenceEngine(jobs, limits, PROFILE, by_priority=True).run()
    same(replay(jobs, limits, {}, by_priority=True), reference)


@settings(deadline=None, max_examples=80)
@given(jobs=loads(), limits=limits(), data=st.data())
def test_prefix_caching_equals_the_reference(
    jobs: list[Job], limits: Limits, data: st.DataObject
) -> None:
    """Prompts share a common start of some blocks in one of two families."""
    hashed = []
    for number, job in enumerate(jobs):
        blocks = job.prompt_tokens // limits.block_size
        shared = min(blocks, data.draw(st.integers(0, 8)))
        family = data.draw(st.sampled_from("ab"))
        names = [f"{family}{index}" for index in range(shared)]
        names += [f"{number}:{index}" for index in range(shared, blocks)]
        hashed.append(replace(job, block_hashes=tuple(names)))
    reference = CachingReference(hashed, limits, PROFILE).run()
    outcome = replay(hashed, limits, {}, prefix_caching=True)
    same(outcome, reference)
    end = outcome.scheduler.observe(outcome.end_s)
    assert (end.kv_usage, end.outstanding_tokens) == (0, 0)


def test_a_known_prefix_is_not_computed_again_but_for_its_last_token() -> None:
    blocks = PrefixCachingBlocks(total=10, block_size=16)
    names = ["a", "b", "c"]
    first = Sequence(48, 1, 1, block_hashes=names)
    assert blocks.admits(first) and first.computed == 0
    blocks.take_chunk(first, 48)
    blocks.release(first, 48)
    assert blocks.used == 0
    again = Sequence(48, 1, 1, block_hashes=names)
    assert blocks.admits(again)
    assert again.computed == 32  # not 48: the last token has to be computed
    longer = Sequence(60, 1, 1, block_hashes=[*names, "d"])
    assert blocks.admits(longer) and longer.computed == 48
    assert blocks.used == 3  # shared blocks count once


def test_the_oldest_freed_blocks_are_forgotten_first_and_the_end_of_a_prompt_before_its_start() -> (
    None
):
    blocks = PrefixCachingBlocks(total=4, block_size=16)
    first = Sequence(48, 1, 1, block_hashes=["a", "b", "c"])
    assert blocks.admits(first)
    blocks.take_chunk(first, 48)
    blocks.release(first, 48)
    blocks.take(2)  # the fourth block, which held nothing, and the end of the prompt
    assert blocks.hits(Sequence(60, 1, 1, block_hashes=["a", "b", "c"])) == ["a", "b"]


def test_a_block_that_is_computed_twice_is_known_once() -> None:
    blocks = PrefixCachingBlocks(total=3, block_size=16)
    one, other = (Sequence(16, 1, 1, block_hashes=["a"]) for _ in range(2))
    for sequence in (one, other):
        assert blocks.admits(sequence)
    for sequence in (one, other):
        blocks.take_chunk(sequence, 16)
    blocks.release(one, 16)
    blocks.take(2)  # the one that held nothing, and the known one
    blocks.release(other, 16)
    assert blocks.hits(Sequence(20, 1, 1, block_hashes=["a"])) == []


def test_the_next_turn_finds_the_answer_before_it() -> None:
    blocks = PrefixCachingBlocks(total=20, block_size=16)
    names = [f"turn:{index}" for index in range(8)]
    first = Sequence(48, 40, 40, block_hashes=names[:5])  # 3 blocks of prompt, 2 of its answer
    assert blocks.admits(first)
    blocks.take_chunk(first, 48)
    blocks.take(3)  # the answer's
    blocks.release(first, 87)
    assert blocks.used == 0
    second = Sequence(100, 5, 5, block_hashes=names[:6])
    assert blocks.admits(second)
    assert second.computed == 5 * 16


def test_a_preempted_sequence_finds_what_it_had_generated() -> None:
    tight = Limits(max_num_seqs=2, max_num_batched_tokens=100, kv_blocks=12, block_size=4)
    jobs = [Job(0.0, 8, 20), Job(0.0, 8, 30)]
    prefill_tokens = []
    for caching in (False, True):
        outcome = replay(jobs, tight, {}, prefix_caching=caching)
        assert [one.preemptions for one in outcome.sequences] == [0, 1]
        prefill_tokens.append(sum(segment.prefill_tokens for segment in outcome.log.segments))
    # It had 24 tokens in six blocks when the other one took the last of them.
    assert prefill_tokens == [8 + 8 + 25, 8 + 8 + 25 - 5 * 4]


def test_prompts_about_one_document_share_its_blocks_and_no_more() -> None:
    one, other = (document_hashes("d", asked, 40, 70, 16) for asked in (300, 75))
    assert len(one) == 4
    assert one[:2] == other[:2]
    assert not set(one[2:]) & set(other)
    assert document_hashes("d", 300, 40, 70, 16) == one
    assert not set(document_hashes("e", 300, 40, 70, 16)) & set(one)


def test_ids_of_a_trace_become_hashes_of_full_blocks() -> None:
    names = block_hashes([7, 9], 512, 16, 600)
    assert len(names) == 600 // 16
    assert names[:2] == ["7:0", "7:16"]
    assert names[32] == "9:0"


def test_the_important_one_overtakes_and_the_unimportant_one_is_preempted() -> None:
    roomy = Limits(max_num_seqs=1, max_num_batched_tokens=100, kv_blocks=100, block_size=16)
    jobs = [Job(0.0, 10, 20), Job(0.01, 10, 5, priority=1), Job(0.02, 10, 5, priority=0)]
    outcome = replay(jobs, roomy, {}, by_priority=True)
    assert [outcome.sequences.index(one) for one in outcome.finished] == [0, 2, 1]
    tight = Limits(max_num_seqs=4, max_num_batched_tokens=100, kv_blocks=4, block_size=16)
    jobs = [Job(0.0, 30, 20, priority=1), Job(0.0, 30, 20, priority=0)]
    outcome = replay(jobs, tight, {}, by_priority=True)
    assert [one.preemptions for one in outcome.sequences] == [1, 0]

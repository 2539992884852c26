"""The scheduling rules of vLLM v1, in time that is computed, not waited for.

The rules (docs/simulator.md says what is left out):

1. A step has a budget of `max_num_batched_tokens`. Running sequences come first, in order: one
   token for each that decodes, then the next chunk of the one whose prefill is not complete. There
   is at most one of those and it is the last: a prompt is cut only where the budget ends.
2. Waiting sequences are admitted in order of arrival while there is budget, fewer than
   `max_num_seqs` run, and all tokens known of the next one fit in the free blocks; blocks are
   taken for its chunk alone. The first that does not fit blocks those behind it. None is admitted
   in a step that preempted.
3. When a running sequence finds no free block, the last running one is preempted: its blocks are
   freed, it goes to the front of the queue, and what it generated is recomputed as prefill.
4. The step in which a prefill is completed brings the next token of that sequence.

Between two changes of the batch all steps are one `Segment`, whose time, energy and blocks have
closed forms: the cost of a simulation grows with its requests, not with its tokens.
"""

from bisect import bisect_left
from collections.abc import Callable
from heapq import heappop, heappush
from math import inf

from bellman.engines.simulated.delays import DelayTotals
from bellman.engines.simulated.kv_blocks import KvBlocks
from bellman.engines.simulated.performance import Performance
from bellman.engines.simulated.prefix_cache import PrefixCachingBlocks
from bellman.engines.simulated.segment import Limits, Peak, Segment
from bellman.engines.simulated.sequence import Sequence
from bellman.engines.simulated.step_log import StepLog
from bellman.engines.simulated.waiting import ByPriority, FirstCome, Waiting
from bellman.sensing.observation import Observation


class Scheduler:
    """One engine's queue, batch and KV cache.

    The caller moves time forward: `advance` to a time, `add` and `abort` at a time, never earlier
    than before. A step that can begin at exactly that time waits for `start` (or for the next,
    later call), so that everything that happens at one time is in one step.
    """

    def __init__(
        self,
        limits: Limits,
        performance: Performance,
        on_finish: Callable[[Sequence], None],
        *,
        start_s: float = 0.0,
        log: StepLog | None = None,
        prefix_caching: bool = False,
        by_priority: bool = False,
    ) -> None:
        self._limits = limits
        self._performance = performance
        self._on_finish = on_finish
        self._log = log
        self.peak = Peak()
        kind = PrefixCachingBlocks if prefix_caching else KvBlocks
        self._blocks = kind(limits.kv_blocks, limits.block_size)
        self._by_priority = by_priority
        self._waiting: Waiting = ByPriority() if by_priority else FirstCome()
        self._waiting_count = 0
        self._running: dict[Sequence, None] = {}  # in order of admission
        self._prefilling: Sequence | None = None
        self._aborting: list[Sequence] = []
        self._finishes: list[tuple[int, int, Sequence]] = []  # heap; preempted ones stay in it
        self._joined = 0
        self._segment: Segment | None = None
        self._boundary_s = start_s  # end of the last step, or since when the engine is idle
        self._due = False  # the next step begins at the boundary
        self._step = 0  # completed steps
        self._kv_tokens = 0  # context of all decoding sequences in the next step
        self._energy_j = 0.0  # up to the boundary
        self._outstanding_tokens = 0
        self._prompt_tokens = self._generated_tokens = self._preemptions = 0
        self._delays = DelayTotals()

    @property
    def next_event_s(self) -> float | None:
        """When `advance` and `start` have to be called next; None while the engine is idle."""
        if self._segment is not None:
            return self._segment.end_s
        return self._boundary_s if self._due else None

    def add(self, sequence: Sequence, time_s: float) -> None:
        """Queue a sequence. It must fit into an empty engine."""
        self.advance(time_s)
        behind_others = self._waiting_count > 0 and not self._by_priority
        if not behind_others and len(self._running) < self._limits.max_num_seqs:
            self._interrupt(time_s)
        self._wake(time_s)
        sequence.arrival_s = time_s
        self._waiting.add(sequence)
        self._waiting_count += 1
        self._outstanding_tokens += sequence.known_tokens + sequence.token_limit

    def abort(self, sequence: Sequence, time_s: float) -> None:
        """Take a sequence out; from the batch at the end of the step in progress."""
        self.advance(time_s)
        if sequence.aborted or sequence.last_token_s >= 0:
            return
        sequence.aborted = True
        if sequence in self._running:
            self._interrupt(time_s)
            self._aborting.append(sequence)
        else:
            self._waiting_count -= 1
            self._forget(sequence)
            if self._waiting.first() is sequence:  # it may have blocked the one behind it
                self._interrupt(time_s)

    def advance(self, time_s: float) -> None:
        """Do everything up to `time_s`: end steps up to then, begin steps before then."""
        while True:
            segment = self._segment
            if segment is not None:
                if segment.end_s > time_s:
                    return
                self._end(segment)
            elif self._due and self._boundary_s < time_s:
                self.start()
            else:
                return

    def start(self) -> None:
        """Begin the step that waits at the boundary, if there is one."""
        if self._segment is not None or not self._due:
            return
        for sequence in self._aborting:
            if sequence in self._running:
                self._remove(sequence)
                self._forget(sequence)
        self._aborting.clear()
        chunks, preempted = self._schedule()
        sequences = self._blocks.decoding
        if not chunks and not sequences:
            self._due = False
            return
        tokens = pairs = 0
        for sequence, chunk in chunks:
            tokens += chunk
            pairs += chunk * sequence.computed + chunk * (chunk + 1) // 2
        self.peak.add(sequences, self._kv_tokens, tokens)
        cost = self._performance.steps(tokens, pairs, sequences, self._kv_tokens)
        steps, more_blocks = 1, 0
        if not chunks and not preempted:  # the batch stays: to the first finish or lack of blocks
            decode_steps = int(self._next_finish()) - self._step
            fit, more_blocks = self._blocks.steps_that_fit(self._step + 1, decode_steps - 1)
            steps += fit
        start_s = self._boundary_s
        end_s = start_s + cost.seconds(steps)
        self._segment = Segment(start_s, end_s, steps, cost, sequences, chunks, more_blocks)

    def energy_j(self, time_s: float) -> float:
        """Return the joules used until `time_s`; a step's energy is spread evenly over it."""
        self.advance(time_s)
        segment = self._segment
        if segment is None:
            idle_s = max(0.0, time_s - self._boundary_s)
            return self._energy_j + self._performance.idle_w * idle_s
        return self._energy_j + segment.joules_until(time_s)

    def observe(self, time_s: float) -> Observation:
        """Return the load at `time_s`; a step's tokens count when it has ended."""
        self.advance(time_s)
        blocks, generated, outstanding = self._blocks.used, 0, self._outstanding_tokens
        if self._segment is not None:
            done = self._segment.steps_done(time_s)
            generated = done * self._segment.sequences
            blocks += self._blocks.growth(self._step + 1, done)
        delays, oldest_s = self._delays, self._waiting.oldest_arrival_s()
        return Observation(
            time_s=time_s,
            waiting=self._waiting_count,
            running=len(self._running),
            kv_usage=blocks / self._blocks.total,
            outstanding_tokens=float(outstanding - generated),
            prompt_tokens_total=self._prompt_tokens,
            generated_tokens_total=self._generated_tokens + generated,
            preemptions_total=self._preemptions,
            completed_total=delays.finished,
            oldest_waiting_s=0.0 if oldest_s is None else time_s - oldest_s,
            queue_delay_sum_s=delays.queue_delay_sum_s,
            queue_delay_count=delays.finished,
            ttft_sum_s=delays.ttft_sum_s,
            ttft_count=delays.ttft_count,
            e2e_sum_s=delays.e2e_sum_s,
            e2e_count=delays.finished,
        )

    def _wake(self, time_s: float) -> None:
        """End idling: the next step may begin at `time_s`."""
        if self._segment is None and not self._due:
            idle_s = max(0.0, time_s - self._boundary_s)
            self._energy_j += self._performance.idle_w * idle_s
            self._boundary_s = max(self._boundary_s, time_s)
            self._due = True

    def _interrupt(self, time_s: float) -> None:
        """Let a run of decode steps end with the step in progress at `time_s`."""
        segment = self._segment
        if segment is None or segment.steps == 1:
            return
        elapsed_s = time_s - segment.start_s
        steps = 1 + bisect_left(range(1, segment.steps), elapsed_s, key=segment.cost.seconds)
        if steps < segment.steps:
            segment.steps = steps
            segment.end_s = segment.start_s + segment.cost.seconds(steps)
            segment.more_blocks = self._blocks.growth(self._step + 1, steps - 1)
            if segment.end_s <= time_s:
                self._end(segment)

    def _schedule(self) -> tuple[list[tuple[Sequence, int]], bool]:
        """Choose the next step's batch and take its blocks.

        Returns the prefill chunks and whether a sequence was preempted.
        """
        blocks, limits = self._blocks, self._limits
        preempted = False
        chunk = 0
        while True:
            needed = growth = blocks.growth_of_one(self._step)
            sequence = self._prefilling
            if sequence is not None and needed <= blocks.free:
                if chunk == 0:  # its turn has come; a preemption for its sake changes it no more
                    left = sequence.known_tokens - sequence.computed
                    chunk = min(left, limits.max_num_batched_tokens - blocks.decoding)
                needed += blocks.blocks_for_chunk(sequence, chunk)
            if needed <= blocks.free:
                break
            self._preempt()
            preempted = True
        budget = limits.max_num_batched_tokens - blocks.decoding
        blocks.take(growth)
        chunks: list[tuple[Sequence, int]] = []
        if sequence is not None:
            blocks.take_chunk(sequence, chunk)
            budget -= chunk
            chunks.append((sequence, chunk))
        if preempted:
            return chunks, True
        while budget > 0 and len(self._running) < limits.max_num_seqs:
            sequence = self._waiting.first()
            if sequence is None:
                break
            if not sequence.aborted:
                if not blocks.admits(sequence):
                    break
                chunk = min(sequence.known_tokens - sequence.computed, budget)
                blocks.take_chunk(sequence, chunk)
                self._outstanding_tokens -= sequence.computed
                budget -= chunk
                chunks.append((sequence, chunk))
                self._running[sequence] = None
                self._waiting_count -= 1
                if sequence.admitted_s < 0:
                    sequence.admitted_s = self._boundary_s
            self._waiting.pop()
        return chunks, False

    def _end(self, segment: Segment) -> None:
        """Account for a segment whose time is over; finish what is finished."""
        self._segment = None
        steps, tokens = segment.steps, segment.steps * segment.sequences
        if self._log is not None:
            self._log.append(segment, self._kv_tokens)
        self._boundary_s = segment.end_s
        self._energy_j += segment.cost.joules(steps)
        self._step += steps
        self._kv_tokens += tokens
        self._generated_tokens += tokens
        self._outstanding_tokens -= tokens
        if segment.more_blocks:
            self._blocks.take(segment.more_blocks)
        self._prefilling = None
        for sequence, chunk in segment.chunks:
            self._end_chunk(sequence, chunk)
        while self._next_finish() <= self._step:
            self._finish(heappop(self._finishes)[2])

    def _end_chunk(self, sequence: Sequence, chunk: int) -> None:
        """Account for a prefill chunk; the last one brings a token."""
        sequence.computed += chunk
        self._outstanding_tokens -= chunk
        counted = min(sequence.computed, sequence.prompt_tokens)
        if counted > sequence.prompt_counted:
            self._prompt_tokens += counted - sequence.prompt_counted
            sequence.prompt_counted = counted
        if sequence.computed < sequence.known_tokens:
            self._prefilling = sequence
            return
        if self._log is not None:
            self._log.join(sequence, self._step, self._boundary_s)
        sequence.generated += 1
        if sequence.first_token_s < 0:
            sequence.first_token_s = self._boundary_s
            self._delays.begin(sequence)
        self._generated_tokens += 1
        self._outstanding_tokens -= 1
        sequence.phase = sequence.known_tokens - self._step
        sequence.finish_step = self._step + sequence.output_tokens - sequence.generated
        self._blocks.join(sequence.phase)
        self._kv_tokens += sequence.known_tokens
        self._joined += 1
        heappush(self._finishes, (sequence.finish_step, self._joined, sequence))

    def _next_finish(self) -> float:
        """Return the next step that finishes a sequence; clears what was preempted or aborted."""
        finishes = self._finishes
        while finishes and finishes[0][2].finish_step != finishes[0][0]:
            heappop(finishes)
        return finishes[0][0] if finishes else inf

    def _finish(self, sequence: Sequence) -> None:
        """Let a sequence go that has its last token."""
        self._remove(sequence)
        self._forget(sequence)
        sequence.last_token_s = self._boundary_s
        self._delays.finish(sequence)
        self._on_finish(sequence)

    def _remove(self, sequence: Sequence, *, returns: bool = False) -> None:
        """Take a sequence out of the batch and free its blocks."""
        del self._running[sequence]
        free = self._blocks.preempt if returns else self._blocks.release
        if sequence.finish_step < 0:
            free(sequence, sequence.computed)
            self._prefilling = None
            return
        context = sequence.phase + self._step
        self._blocks.leave(sequence.phase)
        free(sequence, context - 1)
        self._kv_tokens -= context
        sequence.generated = sequence.output_tokens - (sequence.finish_step - self._step)
        sequence.computed = context
        sequence.finish_step = -1

    def _forget(self, sequence: Sequence) -> None:
        """Take what a sequence still had to do out of the outstanding tokens."""
        to_compute = sequence.known_tokens - sequence.computed
        self._outstanding_tokens -= to_compute + sequence.token_limit - sequence.generated

    def _preempt(self) -> None:
        """Put the last running sequence, or the least important one, back into the queue."""
        if self._by_priority:
            sequence = max(self._running, key=lambda one: (one.priority, one.arrival_s))
        else:
            sequence = next(reversed(self._running))
        if self._log is not None:
            self._log.leave(sequence, self._boundary_s)
        self._remove(sequence, returns=True)
        self._outstanding_tokens += sequence.computed
        sequence.computed = 0
        sequence.preemptions += 1
        self._preemptions += 1
        self._waiting.put_back(sequence)
        self._waiting_count += 1

"""The scheduling rules as plain loops over steps, sequences and blocks: slow and obvious.

Written from the rules in vLLM v1's scheduler, not from the engine it is compared with.
"""

from dataclasses import dataclass, field

from bellman.engines.simulated.performance import Performance
from bellman.engines.simulated.scheduler import Limits


@dataclass(frozen=True)
class Job:
    """One request of a load."""

    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    abort_s: float | None = None


@dataclass
class State:
    """One request's progress."""

    number: int
    job: Job
    computed: int = 0
    blocks: int = 0
    scheduled: int = 0
    preemptions: int = 0
    decoding: bool = False
    token_times_s: list[float] = field(default_factory=list)

    @property
    def known(self) -> int:
        return self.job.prompt_tokens + len(self.token_times_s)


@dataclass(frozen=True)
class Step:
    """What one step did."""

    start_s: float
    end_s: float
    joules: float
    tokens: int
    running: int
    blocks: int
    admitted: tuple[int, ...]
    preempted: tuple[int, ...]


@dataclass
class Run:
    """The outcome of a load."""

    states: list[State]
    steps: list[Step]


class ReferenceEngine:
    """One engine; `run` puts a load through it."""

    def __init__(self, jobs: list[Job], limits: Limits, performance: Performance) -> None:
        self.limits = limits
        self.performance = performance
        self.states = [State(number, job) for number, job in enumerate(jobs)]
        self.waiting: list[State] = []
        self.running: list[State] = []
        self.steps: list[Step] = []
        self.now_s = 0.0

    def free(self) -> int:
        return self.limits.kv_blocks - sum(state.blocks for state in self.running)

    def more_blocks(self, state: State, tokens: int) -> int:
        return -(-(state.computed + tokens) // self.limits.block_size) - state.blocks

    def run(self) -> Run:
        arrivals = sorted(self.states, key=lambda state: (state.job.arrival_s, state.number))
        while arrivals or self.waiting or self.running:
            while arrivals and arrivals[0].job.arrival_s <= self.now_s:
                self.waiting.append(arrivals.pop(0))
            self.drop_aborted()
            if self.waiting or self.running:
                self.step()
            elif arrivals:
                self.now_s = arrivals[0].job.arrival_s
        return Run(self.states, self.steps)

    def drop_aborted(self) -> None:
        for queue in (self.waiting, self.running):
            for state in list(queue):
                if state.job.abort_s is not None and state.job.abort_s <= self.now_s:
                    state.blocks = 0
                    queue.remove(state)

    def step(self) -> None:
        for state in self.running:
            state.scheduled = 0
        budget, preempted = self.schedule_running()
        admitted = self.admit(budget) if not preempted else []
        prefill = pairs = decoding = kv_tokens = 0
        for state in self.running:
            if state.decoding:
                decoding += 1
                kv_tokens += state.known
            else:
                prefill += state.scheduled
                pairs += sum(state.computed + token for token in range(1, state.scheduled + 1))
        cost = self.performance.steps(prefill, pairs, decoding, kv_tokens)
        start_s, self.now_s = self.now_s, self.now_s + cost.seconds(1)
        self.steps.append(
            Step(
                start_s,
                self.now_s,
                cost.joules(1),
                prefill + decoding,
                len(self.running),
                self.limits.kv_blocks - self.free(),
                tuple(state.number for state in admitted),
                tuple(state.number for state in preempted),
            )
        )
        for state in list(self.running):
            self.end_step(state)

    def schedule_running(self) -> tuple[int, list[State]]:
        """Give each running sequence its tokens; return the budget left, and the preempted."""
        budget = self.limits.max_num_batched_tokens
        preempted: list[State] = []
        index = 0
        while index < len(self.running) and budget > 0:
            state = self.running[index]
            tokens = min(state.known - state.computed, budget)
            while state not in preempted and self.more_blocks(state, tokens) > self.free():
                preempted.append(self.preempt_last())
            if state in preempted:
                break
            state.blocks += self.more_blocks(state, tokens)
            state.scheduled = tokens
            budget -= tokens
            index += 1
        return budget, preempted

    def preempt_last(self) -> State:
        victim = self.running.pop()
        victim.blocks = victim.computed = victim.scheduled = 0
        victim.decoding = False
        victim.preemptions += 1
        self.waiting.insert(0, victim)
        return victim

    def admit(self, budget: int) -> list[State]:
        admitted: list[State] = []
        while self.waiting and budget > 0 and len(self.running) < self.limits.max_num_seqs:
            state = self.waiting[0]
            if self.more_blocks(state, state.known) > self.free():
                break
            self.running.append(self.waiting.pop(0))
            admitted.append(state)
            state.scheduled = min(state.known, budget)
            state.blocks = self.more_blocks(state, state.scheduled)
            budget -= state.scheduled
        return admitted

    def end_step(self, state: State) -> None:
        state.computed += state.scheduled
        if state.computed == state.known:
            state.token_times_s.append(self.now_s)
            state.decoding = True
            if len(state.token_times_s) == state.job.output_tokens:
                state.blocks = 0
                self.running.remove(state)


def run_reference(jobs: list[Job], limits: Limits, performance: Performance) -> Run:
    """Run a load to its end."""
    return ReferenceEngine(jobs, limits, performance).run()

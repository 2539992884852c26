"""The scheduling rules as plain loops over steps, sequences and blocks: slow and obvious.

Written from the rules in vLLM v1's scheduler, not from the engine it is compared with.
"""

from dataclasses import dataclass, field

from bellman.engines.simulated.performance import Performance
from bellman.engines.simulated.segment import Limits


@dataclass(frozen=True)
class Job:
    """One request of a load."""

    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    abort_s: float | None = None
    priority: int = 0
    block_hashes: tuple[str, ...] = ()


@dataclass
class State:
    """One request's progress."""

    number: int
    job: Job
    computed: int = 0
    blocks: int = 0
    table: list[int] = field(default_factory=list)
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

    def __init__(
        self, jobs: list[Job], limits: Limits, performance: Performance, by_priority: bool = False
    ) -> None:
        self.limits = limits
        self.by_priority = by_priority
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

    def fits(self, state: State) -> bool:
        return self.more_blocks(state, state.known) <= self.free()

    def grow(self, state: State, tokens: int) -> None:
        state.blocks += self.more_blocks(state, tokens)

    def release(self, state: State) -> None:
        state.blocks = 0

    def order(self, state: State) -> tuple[int, float, int]:
        return state.job.priority, state.job.arrival_s, state.number

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
                    self.release(state)
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
                victim = self.preempt()
                preempted.append(victim)
                if victim.scheduled:  # it stood before this one
                    budget += victim.scheduled
                    victim.scheduled = 0
                    index -= 1
            if state in preempted:
                continue  # vLLM ends the loop here; by arrival there is none left anyway
            self.grow(state, tokens)
            state.scheduled = tokens
            budget -= tokens
            index += 1
        return budget, preempted

    def preempt(self) -> State:
        victim = self.running[-1]
        if self.by_priority:
            victim = max(self.running, key=lambda one: (one.job.priority, one.job.arrival_s))
        self.running.remove(victim)
        self.release(victim)
        victim.computed = 0
        victim.decoding = False
        victim.preemptions += 1
        self.waiting.insert(0, victim)
        return victim

    def admit(self, budget: int) -> list[State]:
        admitted: list[State] = []
        while self.waiting and budget > 0 and len(self.running) < self.limits.max_num_seqs:
            if self.by_priority:
                self.waiting.sort(key=self.order)
            state = self.waiting[0]
            if not self.fits(state):
                break
            self.running.append(self.waiting.pop(0))
            admitted.append(state)
            state.scheduled = min(state.known - state.computed, budget)
            self.grow(state, state.scheduled)
            budget -= state.scheduled
        return admitted

    def end_step(self, state: State) -> None:
        state.computed += state.scheduled
        if state.computed == state.known:
            state.token_times_s.append(self.now_s)
            state.decoding = True
            if len(state.token_times_s) == state.job.output_tokens:
                self.release(state)
                self.running.remove(state)


class CachingReference(ReferenceEngine):
    """The same with every block as a thing of its own, and prefixes that are found again."""

    def __init__(self, jobs: list[Job], limits: Limits, performance: Performance) -> None:
        super().__init__(jobs, limits, performance)
        self.queue = list(range(limits.kv_blocks))  # free blocks, the next to be taken first
        self.hash_of: dict[int, str] = {}
        self.references = [0] * limits.kv_blocks

    def free(self) -> int:
        return len(self.queue)

    def more_blocks(self, state: State, tokens: int) -> int:
        return -(-(state.computed + tokens) // self.limits.block_size) - len(state.table)

    def hits(self, state: State) -> list[int]:
        found: list[int] = []
        blocks = {name: block for block, name in self.hash_of.items()}
        while (len(found) + 1) * self.limits.block_size < state.known:
            name = self.name(state, len(found))
            if name not in blocks:
                break
            found.append(blocks[name])
        return found

    def name(self, state: State, index: int) -> str:
        """A block of the prompt has the job's name, one with an answer in it is its own."""
        names = state.job.block_hashes
        return names[index] if index < len(names) else f"{state.number}/{index}"

    def fits(self, state: State) -> bool:
        hits = self.hits(state)
        new = -(-state.known // self.limits.block_size) - len(hits)
        if new > len([block for block in self.queue if block not in hits]):
            return False
        for block in hits:
            if block in self.queue:
                self.queue.remove(block)
            self.references[block] += 1
        state.table = hits
        state.computed = len(hits) * self.limits.block_size
        return True

    def grow(self, state: State, tokens: int) -> None:
        for _ in range(self.more_blocks(state, tokens)):
            block = self.queue.pop(0)
            self.hash_of.pop(block, None)
            self.references[block] = 1
            state.table.append(block)
        size = self.limits.block_size
        for index in range(state.computed // size, (state.computed + tokens) // size):
            name = self.name(state, index)
            if name not in self.hash_of.values():
                self.hash_of[state.table[index]] = name

    def release(self, state: State) -> None:
        for block in reversed(state.table):
            self.references[block] -= 1
            if self.references[block] == 0:
                self.queue.append(block)
        state.table = []


def run_reference(jobs: list[Job], limits: Limits, performance: Performance) -> Run:
    """Run a load to its end."""
    return ReferenceEngine(jobs, limits, performance).run()

"""The simulated engine: a vLLM server's schedule, time and energy, without the server."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from bellman.app.length_compliance import LengthCompliance
from bellman.corpus.base import Corpus
from bellman.engines.base import Control
from bellman.engines.simulated.profile import ExtrapolationWarning, Profile
from bellman.engines.simulated.scheduler import Scheduler
from bellman.engines.simulated.segment import Limits
from bellman.engines.simulated.sequence import Sequence
from bellman.engines.simulated.session import SimulatedSession
from bellman.errors import require
from bellman.responses.base import ResponseBank
from bellman.schema import Count, NotNegative, Whole, schema
from bellman.sensing.faults import Sense, faulty
from bellman.source import Source
from bellman.virtual_time import VirtualTimeLoop


@schema
class SimulatedEngine:
    """Configuration of the simulated engine; `create` makes the engine."""

    source: ClassVar[Source] = "simulated"

    profile: Profile
    max_num_seqs: Count
    """Sequences in the batch."""
    max_num_batched_tokens: Count
    """Tokens a step."""
    kv_blocks: Count
    """Blocks of the KV cache."""
    block_size: Count
    """Tokens a block."""
    max_model_len: Count
    """Prompt and output tokens of one request."""
    enable_prefix_caching: bool = False
    """Find the blocks of known prefixes again."""
    trace_block_tokens: Count = 512
    """Tokens that one of a trace's `hash_ids` stands for."""
    scheduling_policy: Literal["fcfs", "priority"] = "fcfs"
    sensor_spread: NotNegative = 0.0
    """Standard deviation of ln(count that the law sees / true count) of running and waiting."""
    sensor_missing: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the law's readings that fail, so that no level is published for a period."""
    sensor_seed: Whole = 0
    bank: Any = None
    """Configuration of the response bank, for `create`."""

    def __post_init__(self) -> None:
        """Check what vLLM demands when it starts."""
        at_least = f"must be at least max_num_seqs={self.max_num_seqs}"
        tokens = self.max_num_batched_tokens
        require(tokens >= self.max_num_seqs, "max_num_batched_tokens", tokens, at_least)
        fits = self.max_model_len <= self.kv_blocks * self.block_size
        cache = f"must fit in the KV cache of {self.kv_blocks} x {self.block_size} tokens"
        require(fits, "max_model_len", self.max_model_len, cache)

    @property
    def limits(self) -> Limits:
        """What the scheduler must respect."""
        return Limits(
            self.max_num_seqs, self.max_num_batched_tokens, self.kv_blocks, self.block_size
        )

    def with_faults(self, sense: Sense) -> Sense:
        """Return the sensor that the law reads, with the configured faults."""
        if not self.sensor_spread and not self.sensor_missing:
            return sense
        return faulty(
            sense,
            spread=self.sensor_spread,
            missing=self.sensor_missing,
            seed=self.sensor_seed,
        )

    def create(self, corpus: Corpus, logs: Path | None = None) -> "RunningSimulatedEngine":
        """Make the engine, with the configured bank opened for the corpus; it keeps no logs."""
        require(self.bank is not None, "engine.bank", None, "must be an option of engine/bank")
        return self.with_bank(self.bank.open(corpus))

    def with_bank(self, bank: ResponseBank) -> "RunningSimulatedEngine":
        """Make the engine; `bank` says what the model answers, and how long its prompts are."""
        return RunningSimulatedEngine(self, bank)


class RunningSimulatedEngine:
    """See `bellman.engines.base.Engine`."""

    def __init__(self, config: SimulatedEngine, bank: ResponseBank) -> None:
        self.config = config
        self._bank = bank

    @property
    def source(self) -> Source:
        """Nothing here is measured."""
        return "simulated"

    @property
    def response_source(self) -> str:
        """What the bank is."""
        return self._bank.kind

    @property
    def length_compliance(self) -> LengthCompliance | None:
        """The bank's curve."""
        return self._bank.length_compliance

    @property
    def answers_concise(self) -> bool:
        """Whether the bank has recorded them."""
        return self._bank.answers_concise

    @property
    def loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop]:
        """A loop in virtual time, which refuses real I/O."""
        return VirtualTimeLoop

    def describe(self) -> dict[str, object]:
        """Return the configuration and what the answers are."""
        return {"engine": "simulated", "responses": self._bank.kind, **asdict(self.config)}

    def count_tokens(self, text: str) -> int | None:
        """Count as the bank does; there is no tokenizer."""
        return self._bank.count_tokens(text)

    async def __aenter__(self) -> Self:
        """There is nothing to start."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """There is nothing to stop."""

    @asynccontextmanager
    async def session(self, control: Control) -> AsyncIterator[SimulatedSession]:
        """Open one episode with empty queues."""

        def on_finish(sequence: Sequence) -> None:
            session.finish(sequence)

        config = self.config
        scheduler = Scheduler(
            config.limits,
            config.profile,
            on_finish,
            start_s=asyncio.get_running_loop().time(),
            prefix_caching=config.enable_prefix_caching,
            by_priority=config.scheduling_policy == "priority",
        )
        session = SimulatedSession(
            scheduler,
            self._bank,
            control,
            front_end=config.profile.front_end,
            max_model_len=config.max_model_len,
            prefix_caching=config.enable_prefix_caching,
            block_size=config.block_size,
            trace_block_tokens=config.trace_block_tokens,
            energy_details={"devices": config.profile.devices, **asdict(config.profile.energy)},
            with_faults=config.with_faults,
        )
        async with session:
            yield session
        peak = scheduler.peak
        profile = config.profile
        exceeded = profile.fitted.exceeded_by(peak.sequences, peak.kv_tokens, peak.prefill_tokens)
        if exceeded:
            text = f"the profile of {profile.model} was not fitted on {', '.join(exceeded)}"
            warnings.warn(text, ExtrapolationWarning, stacklevel=2)

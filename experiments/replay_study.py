"""What the replay of a real engine is told: the node `study` of its YAML."""

from dataclasses import dataclass

from bellman.engines.base import Engine
from bellman.engines.batches import Batch, BatchTimes
from bellman.engines.simulated.engine import SimulatedEngine
from bellman.engines.simulated.fit_batches import START
from bellman.engines.simulated.profile import FittedRange, Profile
from bellman.engines.simulated.step_energy import StepEnergy
from bellman.errors import RunError, require

NO_ENERGY = StepEnergy(
    idle_w=0, power_limit_w=1, step_j=0, prefill_token_j=0, sequence_j=0, kv_token_j=0
)
"""The batches say nothing of energy, and nothing of it is shown."""
MIXED_SPREAD = 0.9
"""Answers of a mixed batch: from a tenth of the mean to nearly twice as long."""


@dataclass(frozen=True)
class ReplayStudy:
    """The batches that are timed, and the server's limits."""

    batch_requests: list[int]
    prompt_words: list[int]
    output_tokens: int
    """Of every answer of a batch; in a mixed batch their mean."""
    mixed_requests: int
    """More requests than the batch has places, with answers of different lengths, so that prompts
    are read while other answers are written; 0 for no such batch."""
    rounds: int
    """How often every batch is run before the episodes, and again after them."""
    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    kv_blocks: int | None
    """Blocks of the KV cache; None takes what the server says."""
    block_size: int | None
    """Tokens of a block; None takes what the server says."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("batch_requests", "prompt_words"):
            values = getattr(self, name)
            require(bool(values) and min(values) >= 1, f"study.{name}", values, "must be 1 or more")
        require(
            self.output_tokens >= 20, "study.output_tokens", self.output_tokens, "must be >= 20"
        )
        require(self.rounds >= 1, "study.rounds", self.rounds, "must be 1 or more")
        for name in ("kv_blocks", "block_size"):
            value = getattr(self, name)
            require(
                value is None or value >= 1, f"study.{name}", value, "must be 1 or more, or null"
            )
        longest = max(batch.longest_tokens for batch in self.batches) + max(self.prompt_words)
        require(
            longest < self.max_model_len,
            "study.max_model_len",
            self.max_model_len,
            f"must hold the longest prompt and answer of the batches, more than {longest} tokens",
        )
        require(
            max(self.batch_requests) <= self.max_num_seqs,
            "study.batch_requests",
            self.batch_requests,
            f"must be at most study.max_num_seqs={self.max_num_seqs}",
        )
        require(
            self.mixed_requests == 0 or self.mixed_requests > self.max_num_seqs,
            "study.mixed_requests",
            self.mixed_requests,
            f"must be more than study.max_num_seqs={self.max_num_seqs}, or 0",
        )

    def cache(self, engine: Engine) -> tuple[int, int]:
        """Return blocks and block size of a running engine's KV cache; raises `RunError`."""
        facts = engine.describe()
        kv_blocks = given_or_reported("kv_blocks", self.kv_blocks, facts.get("kv_blocks"))
        block_size = given_or_reported("block_size", self.block_size, facts.get("kv_block_size"))
        if kv_blocks * block_size < self.max_model_len:
            raise RunError(
                f"study.kv_blocks={kv_blocks}: must hold study.max_model_len={self.max_model_len} "
                f"tokens in blocks of {block_size}"
            )
        return kv_blocks, block_size

    @property
    def batches(self) -> list[Batch]:
        """Every number of requests with every prompt length, then the mixed ones."""
        equal = [
            Batch(requests, words, self.output_tokens)
            for requests in self.batch_requests
            for words in self.prompt_words
        ]
        mixed = [
            Batch(self.mixed_requests, words, self.output_tokens, MIXED_SPREAD)
            for words in self.prompt_words
            if self.mixed_requests
        ]
        return equal + mixed

    def simulated(
        self, engine: Engine, measured: list[tuple[Batch, BatchTimes]]
    ) -> SimulatedEngine:
        """Return the simulated engine with a running server's limits, not fitted yet."""
        kv_blocks, block_size = self.cache(engine)
        profile = Profile(
            model=engine.response_source,
            devices="this machine",
            source="batches of requests on the idle engine",
            kv_blocks=kv_blocks,
            time=START,
            energy=NO_ENERGY,
            fitted=FittedRange(
                sequences=self.max_num_seqs,
                kv_tokens=max(
                    min(batch.requests, self.max_num_seqs)
                    * (times.prompt_tokens + batch.output_tokens)
                    for batch, times in measured
                ),
                prefill_tokens=self.max_num_batched_tokens,
            ),
        )
        return SimulatedEngine(
            profile,
            self.max_num_seqs,
            self.max_num_batched_tokens,
            kv_blocks,
            block_size,
            self.max_model_len,
        )


def given_or_reported(name: str, given: int | None, reported: object) -> int:
    """Return the value that was given, or else reported; raises `RunError` without either."""
    if given is not None:
        return given
    if not isinstance(reported, int):
        raise RunError(f"study.{name}=null: the server does not say it, give study.{name}")
    return reported

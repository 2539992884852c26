"""A real engine beside the simulated one: the same schedules, and the errors of the simulation.

On the idle real engine, batches of requests are timed, before the episodes and again after them,
and every answer that the schedules may ask for is recorded. The simulated engine's step time is
fitted to the batches alone. Both engines serve the same congested episodes, which no fit has seen.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from bellman.engines.batches import Batch
from bellman.errors import ConfigError, RunError, require
from bellman.schema import Count, OneOrMore, Whole, schema
from bellman.settings import Settings
from experiments.cells.answers import BANK, AnswersCell
from experiments.cells.batches import BatchesCell
from experiments.cells.episode import EpisodeCell
from experiments.cells.fit import FitCell
from experiments.perform import Outcome
from experiments.studies.base import Cells
from experiments.studies.comparison import episode_cells, find_capacity

MEASURED = {"engine": "measured"}
SIMULATED = {"engine": "simulated"}
"""The two values of the study's axis."""
MIXED_SPREAD = 0.9
"""Answers of a mixed batch: from a tenth of the mean to nearly twice as long."""


@schema
class Replay:
    """The batches that are timed, and the server's limits."""

    batch_requests: OneOrMore[Count]
    prompt_words: OneOrMore[Count]
    output_tokens: Annotated[int, Field(ge=20)]
    """Of every answer of a batch; in a mixed batch their mean."""
    mixed_requests: Whole
    """More requests than the batch has places, with answers of different lengths, so that prompts
    are read while other answers are written; 0 for no such batch."""
    rounds: Count
    """How often every batch is run before the episodes, and again after them."""
    max_num_seqs: Count
    max_num_batched_tokens: Count
    max_model_len: Count
    kv_blocks: Count | None
    """Blocks of the KV cache; None takes what the server says."""
    block_size: Count | None
    """Tokens of a block; None takes what the server says."""
    prefix_caching: bool = False
    """Whether the server finds known prefixes again, where it does not say it."""

    def __post_init__(self) -> None:
        """Check that the batches fit into the server's limits."""
        longest = max(batch.longest_tokens for batch in self.batches) + max(self.prompt_words)
        holds = f"must hold the batches' longest prompt and answer, more than {longest} tokens"
        require(longest < self.max_model_len, "max_model_len", self.max_model_len, holds)
        most = self.max_num_seqs
        fit = f"must be at most max_num_seqs={most}"
        require(max(self.batch_requests) <= most, "batch_requests", self.batch_requests, fit)
        mixed = self.mixed_requests
        more = f"must be more than max_num_seqs={most}, or 0"
        require(mixed == 0 or mixed > most, "mixed_requests", mixed, more)

    def check(self, settings: Settings) -> None:
        """Refuse a simulated engine; raises `ConfigError`."""
        if settings.engine.source != "measured":
            raise ConfigError(
                "engine", "simulated", "must be a real one to compare with: engine=vllm or vllm_cpu"
            )

    def facts(self, settings: Settings) -> dict[str, Any]:
        """There is nothing more to know."""
        return {}

    def cells(self, settings: Settings) -> Cells:
        """Yield what is measured, then the fit, then the same episodes on the simulated engine.

        Without batches, answers or a capacity there is nothing to compare with, and it ends.
        """
        (before,) = yield [self.batches_cell(settings, "before")]
        if before.content is None:
            return
        limits = self.limits(before.content)  # what nobody says must not come to light at the end
        (answers,) = yield [self.answers_cell(settings)]
        if answers.content is None:
            return
        capacity = yield from find_capacity(settings, MEASURED)
        if capacity is None:
            return
        yield episode_cells(settings, capacity.rps, MEASURED)
        (after,) = yield [self.batches_cell(settings, "after")]
        if after.content is None:
            return
        (fit,) = yield [self.fit_cell(before.content, after.content, limits)]
        if fit.content is not None:
            engine = fit.content["engine"] | {"bank": bank_of(answers)}
            same = episode_cells(settings, capacity.rps, SIMULATED)
            yield [on_simulated(episode, engine) for episode in same]

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

    def limits(self, told: Mapping[str, Any]) -> dict[str, int]:
        """Return the server's limits, given or as it told them; raises `RunError`."""
        kv_blocks = given_or_reported("kv_blocks", self.kv_blocks, told["kv_blocks"])
        block_size = given_or_reported("block_size", self.block_size, told["kv_block_size"])
        if kv_blocks * block_size < self.max_model_len:
            raise RunError(
                f"study.kv_blocks={kv_blocks}: must hold study.max_model_len={self.max_model_len} "
                f"tokens in blocks of {block_size}"
            )
        told_caching = told.get("prefix_caching")
        return {
            "enable_prefix_caching": self.prefix_caching if told_caching is None else told_caching,
            "max_num_seqs": self.max_num_seqs,
            "max_num_batched_tokens": self.max_num_batched_tokens,
            "kv_blocks": kv_blocks,
            "block_size": block_size,
            "max_model_len": self.max_model_len,
        }

    def batches_cell(self, settings: Settings, when: str) -> BatchesCell:
        """Return the cell that times the batches before or after the episodes."""
        return BatchesCell(
            values=settings.episode_values(settings.run.baseline),
            batches=tuple(self.batches),
            rounds=self.rounds,
            when=when,
            source=settings.engine.source,
            axes=MEASURED,
        )

    def answers_cell(self, settings: Settings) -> AnswersCell:
        """Return the cell that records the answers, with as many at once as the batch holds."""
        return AnswersCell(
            values=settings.episode_values(settings.run.baseline),
            concurrency=self.max_num_seqs,
            source=settings.engine.source,
            axes=MEASURED,
        )

    def fit_cell(
        self, before: Mapping[str, Any], after: Mapping[str, Any], limits: Mapping[str, int]
    ) -> FitCell:
        """Return the fit to both rounds of batches."""
        return FitCell(
            model=before["model"],
            batches=tuple(self.batches),
            before=before["rounds"],
            after=after["rounds"],
            limits=limits,
            axes=SIMULATED,
        )


def bank_of(answers: Outcome) -> dict[str, Any]:
    """Return the node of the bank that was recorded; its path makes its content part of the key."""
    return {
        "_target_": "bellman.responses.recorded.RecordedBank",
        "path": str(answers.folder / BANK),
        "prompts_as_recorded": True,
    }


def on_simulated(episode: EpisodeCell, engine: Mapping[str, Any]) -> EpisodeCell:
    """Return the episode on a simulated engine."""
    return replace(episode, values={**episode.values, "engine": engine}, source="simulated")


def given_or_reported(name: str, given: int | None, reported: object) -> int:
    """Return the value that was given, or else reported; raises `RunError` without either."""
    if given is not None:
        return given
    if not isinstance(reported, int):
        raise RunError(f"study.{name}=null: the server does not say it, give study.{name}")
    return reported

"""The cell that times batches of requests on the idle engine."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bellman.engines.base import Engine, RequestFailed
from bellman.engines.batches import Batch, BatchTimes, run_batch
from bellman.errors import RunError
from bellman.source import Source
from experiments.cells.base import Watch
from experiments.cells.uncontrolled import no_control
from experiments.parts import Parts

SHAPING = ("engine", "signal")


@dataclass(frozen=True)
class BatchesCell:
    """Every batch, some rounds of it; prompts are new in every round."""

    values: Mapping[str, Any]
    """The entries of an episode."""
    batches: tuple[Batch, ...]
    rounds: int
    when: str
    """`before` or `after` the episodes."""
    source: Source
    axes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"batches {self.when}"

    def specification(self) -> dict[str, Any]:
        """Return what shapes the times."""
        return {
            **{key: self.values[key] for key in SHAPING},
            "batches": [asdict(batch) for batch in self.batches],
            "rounds": self.rounds,
            "when": self.when,
        }

    def run(self, folder: Path, parts: Parts, watch: Watch) -> dict[str, Any]:
        """Time the batches one after the other; also says what the server tells of its cache."""
        engine = parts.engine(self.values["engine"], self.values["corpus"])
        watch.begin(self.label, None)
        rounds = parts.run_coroutine(engine)(self.time_batches(engine))
        watch.finish(None)
        facts = engine.describe()
        return {
            "source": engine.source,
            "when": self.when,
            "rounds": [[asdict(times) for times in of_batch] for of_batch in rounds],
            "model": engine.response_source,
            "kv_blocks": facts.get("kv_blocks"),
            "kv_block_size": facts.get("kv_block_size"),
            "prefix_caching": facts.get("prefix_caching"),
            "sampling": facts.get("sampling"),
        }

    async def time_batches(self, engine: Engine) -> list[list[BatchTimes]]:
        """Return the rounds of every batch."""
        async with engine.session(no_control(self.values)) as session:
            try:
                return [
                    [
                        await run_batch(session, batch, f"{batch}-{self.when}-{number}")
                        for number in range(self.rounds)
                    ]
                    for batch in self.batches
                ]
            except RequestFailed as failure:
                raise RunError(f"a batch could not be timed: {failure}") from None

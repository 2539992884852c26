"""The cell that predicts an episode's queue by the fluid model, before anything is simulated."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from bellman.app.ask import decide
from bellman.app.prompts import PromptBook
from bellman.engines.simulated.fluid import FluidEngine, predict
from bellman.settings import read_episode
from bellman.signal import Signal
from bellman.source import Source
from experiments.cells.base import Watch
from experiments.parts import Parts


@dataclass(frozen=True)
class FluidCell:
    """The mean queue of one arm, from its configuration and the capacity that rates refer to."""

    arm: str
    values: Mapping[str, Any]
    """As those of an `EpisodeCell`."""
    capacity_rps: float | None
    source: Source
    label: str
    axes: Mapping[str, Any] = field(default_factory=dict)

    def specification(self) -> dict[str, Any]:
        """Return what shapes the prediction."""
        return {"name": self.arm, "capacity_rps": self.capacity_rps} | dict(self.values)

    def run(self, folder: Path, parts: Parts, watch: Watch) -> dict[str, Any]:
        """Predict; returns time, requests in the engine and level, once a control period."""
        settings = read_episode(self.values, self.arm, self.values["arm"])
        corpus = parts.corpus(self.values["corpus"])
        bank = settings.engine.bank.open(corpus)
        rules = settings.application
        ids = [document.document_id for document in corpus.documents]
        book = PromptBook(
            {document.document_id: document for document in corpus.documents},
            bank.count_tokens,
            rules.words_per_token,
        )
        schedule = settings.arrivals.schedule(self.capacity_rps, ids, settings.seed, 0)
        known: dict[int, float] = {}

        def output_tokens(level: float) -> float:
            ask = decide(Signal(level, 0.0), 0.0, settings.arm.adaptation, rules)
            if ask.word_budget not in known:
                known[ask.word_budget] = fmean(
                    bank.lookup(number, ask.word_budget).output_tokens for number in ids
                )
            return known[ask.word_budget]

        engine = FluidEngine(
            settings.engine.profile.time,
            settings.engine.max_num_seqs,
            fmean(book.prompt(number, rules.default_words).tokens for number in ids),
        )
        watch.begin(self.label, None)
        points = predict(
            engine,
            schedule.phases,
            settings.arm.control.controller,
            output_tokens,
            period_s=settings.signal.period_s,
            end_s=schedule.end_s,
        )
        watch.finish(None)
        return {"source": self.source, "arm": self.arm, "points": [asdict(one) for one in points]}

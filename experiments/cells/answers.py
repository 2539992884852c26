"""The cell that records every answer an episode may ask for, as a response bank."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from bellman.app.budget import BudgetRules
from bellman.app.prompt import TEMPLATE, document_prompt
from bellman.build import build_class
from bellman.corpus.base import Corpus
from bellman.engines.base import Engine, EngineSession, Request, RequestFailed
from bellman.errors import RunError
from bellman.responses.recorded import RECORDED_RESPONSES, write_recorded
from bellman.source import Source
from bellman.words import count_words
from experiments.cells.base import Watch
from experiments.cells.uncontrolled import no_control
from experiments.parts import Parts

BANK = "bank.parquet"
SHAPING = ("application", "corpus", "engine", "signal")


@dataclass(frozen=True)
class AnswersCell:
    """An answer for every document and every budget."""

    values: Mapping[str, Any]
    """The entries of an episode."""
    concurrency: int
    """Requests at once: as many as the batch holds."""
    source: Source
    label: str = "answers"
    axes: Mapping[str, Any] = field(default_factory=dict)

    def specification(self) -> dict[str, Any]:
        """Return what shapes the answers."""
        return {
            **{key: self.values[key] for key in SHAPING},
            "concurrency": self.concurrency,
        }

    def run(self, folder: Path, parts: Parts, watch: Watch) -> dict[str, Any]:
        """Record the answers and write the bank."""
        corpus = parts.corpus(self.values["corpus"])
        engine = parts.engine(self.values["engine"], self.values["corpus"])
        rules = build_class(BudgetRules, self.values["application"], "application")
        watch.begin(self.label, None)
        rows = parts.run_coroutine(engine)(
            self.record_answers(engine, list(questions(rules, corpus)))
        )
        watch.finish(None)
        metadata = {
            "model": engine.response_source,
            "revision": "as in provenance.json",
            "prompt_template": TEMPLATE,
            "decoding": engine.describe().get("sampling"),
            "corpus": corpus.name,
            "text_digests": corpus.text_digests,
            "recorded_utc": "as in provenance.json",
        }
        write_recorded(
            pa.Table.from_pylist(rows, schema=RECORDED_RESPONSES), metadata, folder / BANK
        )
        return {"source": engine.source, "answers": len(rows), "model": engine.response_source}

    async def record_answers(self, engine: Engine, asked: list[Request]) -> list[dict[str, Any]]:
        """Ask all questions; return the answers in the order of the questions."""
        waiting = iter(list(enumerate(asked)))
        rows: dict[int, dict[str, Any]] = {}

        async def work(session: EngineSession) -> None:
            for number, request in waiting:
                rows[number] = await answer(session, request)

        async with engine.session(no_control(self.values)) as session:
            try:
                async with asyncio.TaskGroup() as workers:
                    for _ in range(self.concurrency):
                        workers.create_task(work(session))
            except BaseExceptionGroup as group:
                raise group.exceptions[0] from None
        return [rows[number] for number in range(len(asked))]


def questions(rules: BudgetRules, corpus: Corpus) -> Iterator[Request]:
    """Yield the requests that the application may make."""
    for document in corpus.documents:
        for words in rules.ladder_words:
            prompt = document_prompt(document, words)
            yield Request(0, document.document_id, prompt, words, rules.max_tokens(words))


async def answer(session: EngineSession, request: Request) -> dict[str, Any]:
    """Return the bank's row for a request."""
    try:
        completion = await session.generate(request, lambda _: None)
    except RequestFailed as failure:
        raise RunError(f"an answer could not be recorded: {failure}") from None
    text = completion.text or ""
    return {
        "document_id": request.document_id,
        "asked_words": request.asked_words,
        "text": text,
        "words": count_words(text),
        "output_tokens": completion.output_tokens,
        "prompt_tokens": completion.prompt_tokens,
        "finish_reason": completion.finish_reason,
    }

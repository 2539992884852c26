"""What the cells of one process share: corpora, engines and prompts, each loaded once."""

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from bellman.app.budget import BudgetRules
from bellman.app.length_compliance import asked_words
from bellman.app.prompts import PromptBook
from bellman.app.summarization import SummarizationApp
from bellman.app.texts import TextStore
from bellman.build import build
from bellman.corpus.base import Corpus
from bellman.engines.base import Engine, EngineSession
from bellman.engines.runtime import RunCoroutine, running
from bellman.episode import Arm
from bellman.errors import RunError
from bellman.load.schedule import Schedule
from bellman.settings import EpisodeSettings
from bellman.signal_path import SignalPath
from experiments.cells.inputs import input_digests

MakeApp = Callable[[EngineSession, Arm], SummarizationApp]


_corpora: dict[str, Corpus] = {}
"""Of all runs of this process: a sweep loads each once."""


class EngineNotStarted(RunError):
    """The engine cannot be started, for this cell or for any other."""


class Parts:
    """Loads what a specification names, or gives what was loaded for an earlier one.

    An engine that has to be started is started when a cell first needs it, and kept for the next;
    another one ends it first: two would measure each other.
    """

    def __init__(self, logs: Path | None = None) -> None:
        self._logs = logs
        """Where a server that is started here writes its log."""
        self._engines: dict[str, Engine] = {}
        self._prompts: dict[tuple[int, int, float], PromptBook] = {}
        self._schedules: dict[str, Schedule] = {}
        self._started = ExitStack()
        self._running: tuple[Engine, RunCoroutine] | None = None

    def corpus(self, node: Mapping[str, Any]) -> Corpus:
        """Return the corpus of a configuration node."""
        key = _text([node, input_digests(dict(node))])
        if key not in _corpora:
            _corpora[key] = build(node, "corpus").load()
        return _corpora[key]

    def engine(self, node: Mapping[str, Any], corpus_node: Mapping[str, Any]) -> Engine:
        """Return the engine of a configuration node, made for a corpus; not started."""
        key = _text([node, corpus_node])
        if key not in self._engines:
            config = build(node, "engine")
            self._engines[key] = config.create(self.corpus(corpus_node), self._logs)
        return self._engines[key]

    def run_coroutine(self, engine: Engine) -> RunCoroutine:
        """Return what runs a coroutine on the engine's clock; starts the engine where needed."""
        if self._running is None or self._running[0] is not engine:
            self.stop()
            try:
                run_coroutine = self._started.enter_context(running(engine))
            except RunError as error:
                raise EngineNotStarted(str(error)) from None
            self._running = (engine, run_coroutine)
        return self._running[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the engine that runs, if one does."""
        self._running = None
        self._started.close()

    def schedule(self, key: object, draw: Callable[[], Schedule]) -> Schedule:
        """Return the schedule that `key` determines: all arms of a repeat share it."""
        text = _text(key)
        if text not in self._schedules:
            if len(self._schedules) > 1:  # arms of a repeat follow each other
                self._schedules.clear()
            self._schedules[text] = draw()
        return self._schedules[text]

    def app_maker(
        self, settings: EpisodeSettings, corpus: Corpus, engine: Engine, texts: TextStore
    ) -> MakeApp:
        """Return the function that makes the application for a session and an arm."""
        rules = settings.application

        def make_app(session: EngineSession, arm: Arm) -> SummarizationApp:
            return SummarizationApp(
                session,
                arm.adaptation,
                rules,
                self._prompt_book(rules, corpus, engine),
                texts,
                asked_words=lambda budget_words: asked_words(
                    budget_words,
                    calibrated=arm.calibrated,
                    length_compliance=engine.length_compliance,
                ),
                request_timeout_s=settings.request_timeout_s,
                signal_path=SignalPath(
                    delay_s=settings.signal.delay_s,
                    loss=settings.signal.loss,
                    listening=settings.signal.listening,
                    seed=settings.seed,
                ),
                client=arm.client,
            )

        return make_app

    def _prompt_book(self, rules: BudgetRules, corpus: Corpus, engine: Engine) -> PromptBook:
        key = (id(corpus), id(engine), rules.words_per_token)
        if key not in self._prompts:
            self._prompts[key] = PromptBook(
                {document.document_id: document for document in corpus.documents},
                engine.count_tokens,
                rules.words_per_token,
            )
        return self._prompts[key]


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)

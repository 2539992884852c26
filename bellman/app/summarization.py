"""The summarization application: holds the last signal, picks a word budget, asks, records."""

import asyncio
from collections.abc import Callable, Sequence

from bellman.adaptation.base import Adaptation
from bellman.app.ask import Ask, decide
from bellman.app.budget import BudgetRules
from bellman.app.prompts import PromptBook
from bellman.app.texts import TextStore
from bellman.attempts.base import Client
from bellman.attempts.give_up import GIVE_UP
from bellman.engines.base import Completion, EngineSession, Request, RequestFailed
from bellman.errors import RunError
from bellman.load.schedule import ScheduledRequest
from bellman.records import RequestRecord
from bellman.signal_path import SignalPath
from bellman.source import Source

ENDED_FIRST = "the run ended first"


class SummarizationApp:
    """One application instance for one episode; its state is the last signal."""

    def __init__(
        self,
        session: EngineSession,
        adaptation: Adaptation,
        rules: BudgetRules,
        prompts: PromptBook,
        texts: TextStore,
        *,
        asked_words: Callable[[int], int],
        request_timeout_s: float,
        signal_path: SignalPath | None = None,
        client: Client = GIVE_UP,
    ) -> None:
        self._session = session
        self._adaptation = adaptation
        self._rules = rules
        self._prompts = prompts
        self._texts = texts
        self._asked_words = asked_words
        self.request_timeout_s = request_timeout_s
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._start_s = self._loop.time()
        self._signal_path = signal_path or SignalPath()
        self.receiver = self._signal_path.receiver

    def receive(self, header_values: Sequence[str]) -> None:
        """Take the signal of a response or of a poll that arrives now."""
        self._signal_path.receive(header_values, self._loop.time())

    def decide(self, request_id: int | None = None) -> Ask:
        """Pick the word budget for a request sent now; without its number, for one that listens."""
        path, now_s = self._signal_path, self._loop.time()
        signal = path.last(now_s) if request_id is None else path.heard_by(request_id, now_s)
        return decide(signal, now_s, self._adaptation, self._rules)

    def word_budget(self) -> int | None:
        """Return what a request sent now would ask for; None where it names no number."""
        ask = self.decide()
        return None if ask.words(self._rules) is None else ask.word_budget

    def intend(
        self, scheduled: ScheduledRequest, repeat: int, arm: str, source: Source
    ) -> RequestRecord:
        """Return the record of a request that is not sent yet: `unfinished`."""
        return RequestRecord(
            repeat=repeat,
            arm=arm,
            request_id=scheduled.request_id,
            document_id=scheduled.document_id,
            phase=scheduled.phase,
            intended_s=scheduled.intended_s,
            source=source,
            status="unfinished",
            reason=ENDED_FIRST,
        )

    async def summarize(self, scheduled: ScheduledRequest, record: RequestRecord) -> None:
        """Send one request and complete its record; raises only `EngineDied` and cancellation."""
        deadline_s = self._loop.time() + self.request_timeout_s
        try:
            async with asyncio.timeout_at(deadline_s):
                completion = await self._ask(scheduled, record, deadline_s)
        except RequestFailed as failure:
            self.fail(record, failure)
        except TimeoutError:
            self.time_out(record)
        else:
            self.complete(record, completion)

    async def _ask(
        self, scheduled: ScheduledRequest, record: RequestRecord, deadline_s: float
    ) -> Completion:
        """Send a request until it is answered, or the client gives it up.

        Each attempt asks for what the level known by then allows. A client that would have to wait
        beyond its deadline gives up at once.
        """
        patience = self._client.start(record.repeat, record.request_id)
        while True:
            request = self.prepare(scheduled, record)
            try:
                return await self._session.generate(request, self.receive)
            except RequestFailed as failure:
                wait_s = patience.wait_s(failure)
                if wait_s is None or self._loop.time() + wait_s >= deadline_s:
                    raise
                self.fail(record, failure)  # what it is should the run end while it waits
            await asyncio.sleep(wait_s)
            record.status, record.reason, record.ended_s = "unfinished", ENDED_FIRST, None

    def prepare(self, scheduled: ScheduledRequest, record: RequestRecord) -> Request:
        """Decide what is asked, note it in the record, and return the request to be sent now."""
        ask = self.decide(scheduled.request_id)
        words = ask.words(self._rules)
        asked_words = None if words is None else self._asked_words(words)
        prompt = self._prompts.prompt(scheduled.document_id, asked_words)
        record.level = ask.level
        record.level_age_s = ask.level_age_s
        if words is not None:
            record.scale = ask.word_budget / self._rules.default_words
            record.word_budget = ask.word_budget
        record.asked_words = asked_words
        record.max_tokens = ask.max_tokens(asked_words, self._rules)
        if record.sent_s is None:
            record.sent_s = self._loop.time() - self._start_s
        return Request(
            request_id=scheduled.request_id,
            document_id=scheduled.document_id,
            prompt=prompt.text,
            asked_words=asked_words,
            max_tokens=record.max_tokens,
            prompt_tokens=scheduled.prompt_tokens or prompt.tokens,
            forced_output_tokens=self._forced_tokens(scheduled.output_tokens, record.word_budget),
            priority=scheduled.priority or 0,
            document_tokens=None if scheduled.prompt_tokens else prompt.document_tokens,
            hash_ids=scheduled.hash_ids or (),
        )

    def fail(self, record: RequestRecord, failure: RequestFailed) -> None:
        """Complete the record of a request that has failed now."""
        record.status, record.reason = failure.status, failure.reason
        record.retries = failure.retries
        record.ended_s = self._loop.time() - self._start_s

    def time_out(self, record: RequestRecord) -> None:
        """Complete the record of a request whose time is over."""
        record.status = "timeout"
        record.reason = f"no complete answer within {self.request_timeout_s:g} s"
        record.ended_s = self._loop.time() - self._start_s

    def _forced_tokens(self, trace_tokens: int | None, word_budget: int | None) -> int | None:
        """Scale a trace's output length as the word budget scales the default length."""
        if trace_tokens is None:
            return None
        if word_budget is None:
            raise RunError(
                "the arrivals set how long answers are, and nobody has measured how much `be "
                "concise` shortens those: choose arrivals without lengths, or another adaptation"
            )
        return max(1, round(trace_tokens * word_budget / self._rules.default_words))

    def complete(self, record: RequestRecord, completion: Completion) -> None:
        """Complete the record of a request that is answered."""
        record.status, record.reason = "ok", None
        record.first_token_s = completion.first_token_s - self._start_s
        if completion.first_content_token_s is not None:
            record.first_content_token_s = completion.first_content_token_s - self._start_s
        record.last_token_s = record.ended_s = completion.last_token_s - self._start_s
        record.prompt_tokens = completion.prompt_tokens
        record.output_tokens = completion.output_tokens
        record.reasoning_tokens = completion.reasoning_tokens
        record.finish_reason = completion.finish_reason
        record.preemptions = completion.preemptions
        record.chunk_gaps_s = completion.chunk_gaps_s
        record.retries = completion.retries
        if completion.text is not None:
            stored = self._texts.add(record.document_id, completion.text)
            record.text_id, record.output_words = stored.text_id, stored.words

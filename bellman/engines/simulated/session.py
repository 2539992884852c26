"""One episode on the simulated engine: requests in, answers out, in virtual time."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from bellman.admission.accept_all import AcceptAll
from bellman.admission.base import Arrival, Door, Permit, Refusal
from bellman.controllers.publisher import SignalPublisher
from bellman.engines.base import (
    Completion,
    Control,
    EngineDied,
    HeadersCallback,
    OnEnd,
    Request,
    RequestFailed,
    ServerState,
    SessionReport,
)
from bellman.engines.simulated.arriving import Arriving
from bellman.engines.simulated.front_end import FrontEnd
from bellman.engines.simulated.meter import ModelledMeter
from bellman.engines.simulated.prefix_cache import request_hashes
from bellman.engines.simulated.scheduler import Scheduler
from bellman.engines.simulated.sequence import Sequence
from bellman.responses.base import ResponseBank
from bellman.sensing.failure import SensorFailed
from bellman.sensing.faults import Sense
from bellman.sensing.observation import Observation

TICKS_PER_S = 1_000_000
"""Resolution of the virtual-time loop; the engine's own times are exact."""


@dataclass(slots=True)
class _Answer:
    """What a sequence's end is told with, and to whom."""

    text: str | None
    finish_reason: str
    on_end: OnEnd
    permit: Permit | None
    """Where the door asks how a request ended."""


class SimulatedSession:
    """Drives a scheduler by the running loop's clock."""

    def __init__(
        self,
        scheduler: Scheduler,
        bank: ResponseBank,
        control: Control,
        *,
        front_end: FrontEnd,
        max_model_len: int,
        prefix_caching: bool,
        block_size: int,
        trace_block_tokens: int,
        energy_details: dict[str, object],
        with_faults: Callable[[Sense], Sense],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._scheduler = scheduler
        self._bank = bank
        accepts_all = isinstance(control.admission, AcceptAll)  # whatever the load is
        self._door: Door | None = None if accepts_all else control.admission.open()
        self._arriving = Arriving(front_end, self._arrive)
        self._max_model_len = max_model_len
        self._prefix_caching = prefix_caching
        self._block_size = block_size
        self._trace_block_tokens = trace_block_tokens
        self._energy_details = energy_details
        self._publisher = SignalPublisher(
            control.controller, with_faults(self._sense), control.period_s
        )
        self._publishing: asyncio.Task[None] | None = None
        self._answers: dict[Sequence, _Answer] = {}
        self._finished: list[Sequence] = []
        self._timer: asyncio.Handle | None = None
        self._timer_s: float | None = None
        self._failure: Exception | None = None

    async def __aenter__(self) -> Self:
        """Start the control law."""
        self._publishing = asyncio.create_task(self._publisher.run())
        await asyncio.sleep(0)  # it runs once, so that the first response carries its level
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Stop the control law and the engine's clock."""
        if self._timer is not None:
            self._timer.cancel()
        self._arriving.close()
        if self._publishing is not None:
            self._publishing.cancel()
            await asyncio.gather(self._publishing, return_exceptions=True)

    async def generate(self, request: Request, on_headers: HeadersCallback) -> Completion:
        """Answer one request: see `EngineSession.generate`."""
        answer: asyncio.Future[Completion] = self._loop.create_future()

        def on_end(end: Completion | EngineDied) -> None:
            if answer.done():
                return
            if isinstance(end, EngineDied):
                answer.set_exception(end)
            else:
                answer.set_result(end)

        sequence = self.start(request, on_headers, on_end)
        try:
            return await answer
        except asyncio.CancelledError:
            self.cancel(sequence)
            raise

    def start(self, request: Request, on_headers: HeadersCallback, on_end: OnEnd) -> Sequence:
        """Send one request; its end is told to `on_end`, without a task or a future.

        Returns what `cancel` takes. Raises `RequestFailed` where the failure shows at once.
        """
        if self._failure is not None:
            raise EngineDied("the simulated engine failed") from self._failure
        entry = None if self._door is None else self._enter(self._door, request)
        header = self._publisher.header
        on_headers([] if header is None else [header])
        if isinstance(entry, Refusal):
            raise RequestFailed(
                "rejected",
                entry.reason,
                http_status=entry.status,
                retry_after_s=entry.retry_after_s,
            )
        try:
            sequence, text, finish_reason = self._sequence(request)
        except RequestFailed:
            if entry is not None:
                entry.done("error", self._loop.time())
            raise
        self._answers[sequence] = _Answer(text, finish_reason, on_end, entry)
        self._arriving.send(sequence)
        return sequence

    def _enter(self, door: Door, request: Request) -> Permit | Refusal:
        asked_tokens = request.forced_output_tokens or request.max_tokens
        arrival = Arrival(request.prompt_tokens, asked_tokens)
        return door.acquire(arrival, self._sense(), self._loop.time())

    def _sequence(self, request: Request) -> tuple[Sequence, str | None, str]:
        """Return what the engine has to do, the answer's text, and why it will end.

        Raises `RequestFailed` for what the engine cannot do.
        """
        prompt_tokens = request.prompt_tokens
        if prompt_tokens is None or prompt_tokens < 1:
            raise RequestFailed("error", f"prompt of {prompt_tokens} tokens")
        text: str | None = None
        finish_reason = "stop"
        if request.forced_output_tokens is not None:
            limit = tokens = request.forced_output_tokens
            finish_reason = "length"
        else:
            response = self._bank.lookup(request.document_id, request.asked_words)
            limit = request.max_tokens
            tokens = min(response.output_tokens, limit)
            finish_reason, text = response.finish_reason, response.text
            if tokens < response.output_tokens:
                finish_reason, text = "length", cut_words(text, tokens / response.output_tokens)
        if prompt_tokens + limit > self._max_model_len:
            raise RequestFailed(
                "error",
                f"{prompt_tokens} prompt tokens + {limit} output tokens exceed the model's "
                f"{self._max_model_len}",
            )
        if tokens < 1:
            raise RequestFailed("error", f"{tokens} output tokens asked")
        sequence = Sequence(prompt_tokens, tokens, limit, request.priority)
        if self._prefix_caching:
            sequence.block_hashes = request_hashes(
                request, sequence, self._trace_block_tokens, self._block_size
            )
        return sequence, text, finish_reason

    def cancel(self, sequence: Sequence) -> None:
        """Take a request back whose end was not told; then it never is."""
        answer = self._answers.pop(sequence, None)
        if answer is not None and answer.permit is not None:
            answer.permit.done("left", self._loop.time())
        if not self._arriving.take_back(sequence):
            self._scheduler.abort(sequence, self._loop.time())
            self._arm()

    async def state(self) -> ServerState:
        """Return the load and the published level."""
        failure = self._publisher.failure
        # In a simulation a broken law ends the run; a sensor fails there because it was told to.
        if failure is not None and not isinstance(failure, SensorFailed):
            raise EngineDied(f"the control law failed: {self._publisher.reason}")
        observation, signal = self._sense(), self._publisher.signal
        if signal is None:
            return ServerState(observation, None, None)
        return ServerState(observation, signal.level, self._loop.time() - signal.time_s)

    def energy_meter(self) -> ModelledMeter:
        """Return the model's meter."""
        return ModelledMeter(self._joules_at, self._energy_details)

    def local_server(self) -> None:
        """Return None: there is no server's process."""

    def report(self) -> SessionReport:
        """Return that every episode has an engine of its own."""
        return SessionReport(prefix_cache="starts empty" if self._prefix_caching else "disabled")

    def finish(self, sequence: Sequence) -> None:
        """Take a sequence that has its last token; its end is told when the scheduler is done."""
        self._finished.append(sequence)

    def _arrive(self, sequence: Sequence) -> None:
        """Queue a request that the front end is done with."""
        try:
            self._scheduler.add(sequence, self._loop.time())
            self._arm()
        except Exception as failure:  # a callback's exception would only be logged
            self._fail(failure)

    def _hand_over(self) -> None:
        finished, self._finished = self._finished, []
        for sequence in finished:
            answer = self._answers.pop(sequence, None)
            if answer is not None:
                if answer.permit is not None:
                    answer.permit.done("ok", self._loop.time())
                answer.on_end(
                    Completion(
                        text=answer.text,
                        prompt_tokens=sequence.prompt_tokens,
                        output_tokens=sequence.output_tokens,
                        finish_reason=answer.finish_reason,
                        first_token_s=sequence.first_token_s,
                        first_content_token_s=sequence.first_token_s,
                        last_token_s=sequence.last_token_s,
                        preemptions=sequence.preemptions,
                    )
                )

    def _sense(self) -> Observation:
        observation = self._scheduler.observe(self._loop.time())
        self._arm()
        return self._arriving.seen_in(observation)

    def _joules_at(self, time_s: float) -> float:
        joules = self._scheduler.energy_j(time_s)
        self._arm()
        return joules

    def _arm(self) -> None:
        """Set the timer for the scheduler's next event, on the first tick not before it.

        The quarter of a tick keeps the loop from calling a tick early: it takes a timer as due
        when less than its resolution is missing.
        """
        if self._finished:  # by a look at the scheduler; whoever looked is not interrupted
            self._loop.call_soon(self._hand_over)
        event_s = self._scheduler.next_event_s
        if event_s == self._timer_s:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_s = None, event_s
        if event_s is None:
            return
        tick = math.ceil(event_s * TICKS_PER_S)
        if tick <= round(self._loop.time() * TICKS_PER_S):
            self._timer = self._loop.call_soon(self._on_timer)
        else:
            self._timer = self._loop.call_at((tick + 0.25) / TICKS_PER_S, self._on_timer)

    def _on_timer(self) -> None:
        event_s = self._timer_s
        self._timer = self._timer_s = None
        assert event_s is not None
        try:
            self._scheduler.advance(max(event_s, self._loop.time()))
            self._scheduler.start()
            self._hand_over()
            self._arm()
        except Exception as failure:  # a callback's exception would only be logged
            self._fail(failure)

    def _fail(self, failure: Exception) -> None:
        """End all requests: the engine is broken."""
        self._failure = failure
        answers, self._answers = self._answers, {}
        for answer in answers.values():
            if answer.permit is not None:
                answer.permit.done("error", self._loop.time())
            answer.on_end(EngineDied("the simulated engine failed"))


@lru_cache(maxsize=4096)  # answers repeat
def cut_words(text: str, share: float) -> str:
    """Return the first `share` of the words of a text, as a token limit would leave them."""
    words = text.split(" ")
    return " ".join(words[: max(1, int(share * len(words)))])

"""What every engine offers the experiment: simulated, vLLM, or any OpenAI-compatible server."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from msgspec import Struct

from bellman.admission.base import Admission
from bellman.app.length_compliance import LengthCompliance
from bellman.controllers.base import Controller
from bellman.energy.base import EnergyMeter, LocalServer
from bellman.sensing.observation import Observation
from bellman.signal import format_level
from bellman.source import Source

HeadersCallback = Callable[[Sequence[str]], None]
"""Takes all values of the congestion header, once, when a response's headers arrive."""


class Request(Struct, frozen=True):
    """One summarization request as the application sends it.

    This and its answer are made for every request of a simulation: a struct is made in a tenth of
    a frozen dataclass's time.
    """

    request_id: int
    document_id: str
    prompt: str
    asked_words: int | None
    """Words that the prompt names; None where it asks to be concise."""
    max_tokens: int
    prompt_tokens: int | None = None
    """Known or estimated prompt length; a real engine reports its own."""
    forced_output_tokens: int | None = None
    """Length-forced mode: exactly this many output tokens, whatever the model would say."""
    priority: int = 0
    """The lowest number goes first, on the simulated engine that schedules by priority; real
    engines are not told."""
    document_tokens: int | None = None
    """How many of the prompt's first tokens are the document's, the same in all prompts about it,
    for the simulated prefix cache; None where the prompt is not of the document's text."""
    hash_ids: tuple[int, ...] = ()
    """A trace's names of the prompt's blocks, `engine.trace_block_tokens` tokens each, for the
    simulated prefix cache; real engines are not told, they hash the text they get."""


class Completion(Struct, frozen=True):
    """A finished answer. Times are in seconds of the running loop's clock."""

    text: str | None
    """None where no text exists (length-forced mode)."""
    prompt_tokens: int | None
    output_tokens: int | None
    """As the engine reports them, never the number of chunks; None where it reports none."""
    finish_reason: str | None
    """`stop`, or `length` when the token guard cut the answer."""
    first_token_s: float
    """Of anything that the model wrote, reasoning included."""
    last_token_s: float
    """Of anything that the model wrote: `output_tokens` counts to here."""
    first_content_token_s: float | None = None
    """Of the answer's text, after any reasoning; None where there is no text."""
    reasoning_tokens: int | None = None
    """Those of `output_tokens` that were reasoning, where the server reports them."""
    preemptions: int | None = None
    chunk_gaps_s: list[float] | None = None
    """Waits between two pieces of the stream, reasoning included; None where there is none."""
    retries: int | None = None
    """How often it was sent again because its connection was stale; None without connections."""


class RequestFailed(Exception):
    """A request without a usable answer."""

    def __init__(
        self,
        status: Literal["rejected", "error", "timeout"],
        reason: str,
        retries: int | None = None,
        *,
        http_status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.retries = retries
        self.http_status = http_status
        """None where there was no HTTP answer."""
        self.retry_after_s = retry_after_s
        """How long the server asks to wait before another try; None where it does not say."""


class EngineDied(RuntimeError):
    """The engine is gone; the run ends as failed with everything recorded so far."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """What the server says of itself, for the timeline: its load and its published level."""

    observation: Observation | None
    level: float | None
    """None while the server publishes no level."""
    level_age_s: float | None
    """Seconds since a level was published last."""
    refused_level: str | None = None
    """What the server said in place of a level, where that is none."""

    @property
    def level_values(self) -> list[str]:
        """The level as the header's values, for `bellman.signal.SignalReceiver`."""
        if self.refused_level is not None:
            return [self.refused_level]
        return [] if self.level is None else [format_level(self.level)]


@dataclass(frozen=True, slots=True)
class SessionReport:
    """What a session says of its episode, besides the answers."""

    prefix_cache: str
    """What kept the prompts of earlier episodes from being found in the prefix cache."""
    salt: str | None = None
    """What made this episode's prompts differ from those of all others, where that was done."""
    retries: int | None = None
    """Requests that were sent again (see `Completion.retries`)."""
    invalid_reasons: tuple[str, ...] = ()
    """Why the episode cannot be compared with others."""
    warnings: tuple[str, ...] = ()


class EngineSession(Protocol):
    """One episode on an engine, under one controller and admission, with empty queues at start."""

    async def generate(self, request: Request, on_headers: HeadersCallback) -> Completion:
        """Send one request and wait for its whole answer.

        `on_headers` is called as soon as response headers arrive (before the first token).
        Raises `RequestFailed` for this request's failure and `EngineDied` when the engine is gone.
        """

    async def state(self) -> ServerState:
        """Return the server's load and level (GET /bellman/congestion on a real server)."""

    def energy_meter(self) -> EnergyMeter | None:
        """Return the engine's own meter (the simulated one models energy), or None."""

    def local_server(self) -> LocalServer | None:
        """Return where the server runs on this machine, for a meter; None where it is unknown."""

    def report(self) -> SessionReport:
        """Return what there is to say of the episode so far."""


OnEnd = Callable[[Completion | EngineDied], None]
"""Takes what a request came to, from the loop. Must not raise: nobody would hear of it."""


@runtime_checkable
class DirectSession(Protocol):
    """What a session offers besides where a request costs it no waiting: a simulated engine."""

    def start(self, request: Request, on_headers: HeadersCallback, on_end: OnEnd) -> Any:
        """Send one request without waiting; its end is told to `on_end`, later and once.

        Returns what `cancel` takes. Raises as `generate` does for what fails at once.
        """

    def cancel(self, started: Any) -> None:
        """Take back a request whose end has not been told; it never will be."""


@dataclass(frozen=True)
class Control:
    """The infrastructure's half of an arm, as the server needs it."""

    controller: Controller
    admission: Admission
    period_s: float


class Engine(Protocol):
    """A configured engine: `async with engine:` starts and stops whatever it needs."""

    @property
    def source(self) -> Source:
        """`simulated` or `measured`; every record carries it."""

    @property
    def response_source(self) -> str:
        """Where answers come from: `extractive stand-in`, `recorded from <model>`, a model."""

    @property
    def length_compliance(self) -> LengthCompliance | None:
        """Mean words written by words asked for, where the engine has a recorded bank."""

    @property
    def answers_concise(self) -> bool:
        """Whether it has answers to the prompt that names no number of words."""

    @property
    def loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop] | None:
        """A virtual-time loop for simulated engines, None for the normal loop."""

    def describe(self) -> dict[str, object]:
        """Return model, versions, arguments and profile, for provenance.json."""

    def count_tokens(self, text: str) -> int | None:
        """Count tokens with the engine's tokenizer, or None when it has none at hand."""

    async def __aenter__(self) -> "Engine":
        """Start the engine; raises `RunError` with the remedy when it cannot."""

    async def __aexit__(self, *exc: object) -> None:
        """Stop the engine and every process it started."""

    def session(self, control: Control) -> AbstractAsyncContextManager[EngineSession]:
        """Open one episode: empty queues, law restarted, prefix cache reset."""

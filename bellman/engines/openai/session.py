"""One episode on an OpenAI-compatible server: requests streamed, the server's state polled."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from bellman.energy.base import EnergyMeter, LocalServer
from bellman.engines.base import (
    Completion,
    EngineDied,
    HeadersCallback,
    Request,
    RequestFailed,
    ServerState,
    SessionReport,
)
from bellman.engines.openai.answer import StreamedAnswer
from bellman.engines.openai.connections import Exchange, exchange
from bellman.engines.openai.control import read_state
from bellman.engines.openai.failures import http_failure, message_of
from bellman.engines.openai.fetch import is_compressed, read_start
from bellman.engines.openai.prefix_cache import UNTOUCHED, CacheState
from bellman.engines.openai.sse import EventParser
from bellman.foreign_text import printable
from bellman.signal import HEADER

LARGEST_STREAM_BYTES = 32 * 2**20
"""Of a whole answer with everything around its text."""
LARGEST_ERROR_BYTES = 64 * 2**10
"""So much of an error's body is read."""
ERROR_BODY_S = 5.0
"""A refusal is one whether or not its body comes: it is waited for so long."""
AFTER_DONE_S = 1.0
"""After `[DONE]` the stream's end is waited for so long, so that its connection can be reused."""

Died = Callable[[], Awaitable[str | None]]
"""Asked after a failure: why the server's process is gone, or None when it is alive."""


async def not_watched() -> str | None:
    """Stand for a server whose process is not ours: it never counts as dead."""
    return None


@dataclass(frozen=True)
class ChatServer:
    """Where requests go and what every one of them carries."""

    root_url: str
    """Without `/v1` and without a slash at the end."""
    model: str
    timeout_s: float
    """Deadline of a whole request, queueing included."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """Further entries of every request's body: temperature, seed, top_p..."""


def body_of(request: Request, server: ChatServer, cache: CacheState = UNTOUCHED) -> dict[str, Any]:
    """Return the JSON body of a chat completion request."""
    body: dict[str, Any] = {
        **server.sampling,
        **cache.entries,
        "model": server.model,
        "messages": [{"role": "user", "content": cache.first_line + request.prompt}],
        "max_tokens": request.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.forced_output_tokens is not None:
        # Special tokens stay visible: a model with random weights may write nothing else.
        body |= {
            "max_tokens": request.forced_output_tokens,
            "min_tokens": request.forced_output_tokens,
            "ignore_eos": True,
            "skip_special_tokens": False,
        }
    return body


class OpenAISession:
    """Implements `EngineSession` with streamed chat completions (times in loop seconds)."""

    def __init__(
        self,
        pool: aiohttp.ClientSession,
        server: ChatServer,
        died: Died = not_watched,
        cache: CacheState = UNTOUCHED,
    ) -> None:
        self._pool = pool
        self._server = server
        self._died = died
        self._cache = cache
        self._retries = 0
        self.meter: EnergyMeter | None = None
        """What reads the server's energy, where the configured meter must not."""
        self.server: LocalServer | None = None
        """Where it runs, where that is on this machine."""

    async def generate(self, request: Request, on_headers: HeadersCallback) -> Completion:
        """Stream one chat completion; see `EngineSession.generate`."""
        attempt = Exchange()
        try:
            async with asyncio.timeout(self._server.timeout_s):
                try:
                    return await self._stream(request, on_headers, attempt)
                except (aiohttp.ClientError, OSError):
                    if not attempt.was_stale:
                        raise
                self._retries += 1
                attempt = Exchange(fresh=True)
                return await self._stream(request, on_headers, attempt)
        except TimeoutError:
            reason = f"no whole answer within {self._server.timeout_s:g} s"
            raise RequestFailed("timeout", reason, int(attempt.fresh)) from None
        except RequestFailed as failure:
            if failure.status == "error":
                await self._raise_if_died()
            failure.retries = int(attempt.fresh)
            raise
        except Exception as error:  # whatever a server's bytes set off costs this request
            await self._raise_if_died()
            lost = isinstance(error, aiohttp.ClientError | OSError)
            what = "connection failed" if lost else "the answer cannot be read"
            reason = message_of(f"{what}: {type(error).__name__}: {error}".encode(errors="replace"))
            raise RequestFailed("error", reason, int(attempt.fresh)) from None

    async def state(self) -> ServerState:
        """Poll GET /bellman/congestion; all None where the server does not answer it."""
        state = await read_state(self._pool, self._server.root_url)
        if state is None:
            await self._raise_if_died()
        return state or ServerState(observation=None, level=None, level_age_s=None)

    def energy_meter(self) -> EnergyMeter | None:
        """Return None where the configured meter may read this machine's devices."""
        return self.meter

    def local_server(self) -> LocalServer | None:
        """Return what the engine knows of the server's process."""
        return self.server

    def report(self) -> SessionReport:
        """Return the state of the prefix cache, and how many requests were sent again."""
        again = f"{self._retries} requests were sent again: the server had closed their connections"
        return SessionReport(
            prefix_cache=self._cache.way,
            salt=self._cache.salt,
            retries=self._retries,
            invalid_reasons=self._cache.invalid_reasons,
            warnings=(again,) if self._retries else (),
        )

    async def _stream(
        self, request: Request, on_headers: HeadersCallback, attempt: Exchange
    ) -> Completion:
        url = f"{self._server.root_url}/v1/chat/completions"
        body = json.dumps(body_of(request, self._server, self._cache)).encode()
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        outer = exchange.set(attempt)
        try:
            response = await self._pool.post(url, data=body, headers=headers, allow_redirects=False)
        finally:
            exchange.reset(outer)
        async with response:
            on_headers(response.headers.getall(HEADER, []))
            if response.status != 200:
                raise http_failure(
                    response.status,
                    await _error_body(response),
                    response.headers.get("Location"),
                    response.headers.get("Retry-After"),
                )
            if is_compressed(response):
                raise RequestFailed("error", "a compressed answer, which was not asked for")
            if response.content_type != "text/event-stream":
                message = message_of(await _error_body(response))
                kind = printable(response.content_type, 80)
                raise RequestFailed("error", f"{kind}, not a stream: {message}")
            answer = await _read_answer(response.content)
        return answer.completion(request.forced_output_tokens, int(attempt.fresh))

    async def _raise_if_died(self) -> None:
        why = await self._died()
        if why is not None:
            raise EngineDied(why)


async def _error_body(response: aiohttp.ClientResponse) -> bytes:
    """Return the start of an error's body, as far as it comes."""
    with suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(ERROR_BODY_S):
            return await read_start(response, LARGEST_ERROR_BYTES)
    return b""


async def _read_answer(content: aiohttp.StreamReader) -> StreamedAnswer:
    """Read a response's body to `[DONE]` or to its end."""
    loop = asyncio.get_running_loop()
    parser, answer = EventParser(), StreamedAnswer()
    size_bytes = 0
    async for chunk in content.iter_any():
        now_s = loop.time()
        size_bytes += len(chunk)
        if size_bytes > LARGEST_STREAM_BYTES:
            limit = LARGEST_STREAM_BYTES // 2**20
            raise RequestFailed("error", f"an answer of more than {limit} MiB")
        for event in parser.feed(chunk):
            answer.take(event, now_s)
        if answer.done:
            await _read_end(content)
            return answer
    now_s = loop.time()
    for event in parser.finish():
        answer.take(event, now_s)
    return answer


async def _read_end(content: aiohttp.StreamReader) -> None:
    """Read what a server still sends after `[DONE]`: at the end the connection is free again."""
    with suppress(Exception):  # the answer is whole, whatever follows
        async with asyncio.timeout(AFTER_DONE_S):
            size_bytes = 0
            async for chunk in content.iter_any():
                size_bytes += len(chunk)
                if size_bytes > LARGEST_ERROR_BYTES:
                    return

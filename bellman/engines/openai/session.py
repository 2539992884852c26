"""One episode on an OpenAI-compatible server: requests streamed, the server's state polled."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
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
)
from bellman.engines.openai.answer import StreamedAnswer
from bellman.engines.openai.control import read_state
from bellman.engines.openai.failures import http_failure, message_of
from bellman.engines.openai.sse import EventParser
from bellman.open_files import allow_open_files
from bellman.signal import HEADER

KEEP_ALIVE_S = 2.0
"""Idle connections close here first: uvicorn drops them after 5 s, in the middle of a reuse."""

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


def open_pool(api_key: str | None) -> aiohttp.ClientSession:
    """Open the connection pool of an engine.

    It has no limit: a request that waits for a connection would queue where nobody measures it.
    """
    allow_open_files()
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S),
        timeout=aiohttp.ClientTimeout(total=None),
        headers={"Authorization": f"Bearer {api_key}"} if api_key else None,
    )


def body_of(request: Request, server: ChatServer) -> dict[str, Any]:
    """Return the JSON body of a chat completion request."""
    body: dict[str, Any] = {
        **server.sampling,
        "model": server.model,
        "messages": [{"role": "user", "content": request.prompt}],
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
        self, pool: aiohttp.ClientSession, server: ChatServer, died: Died = not_watched
    ) -> None:
        self._pool = pool
        self._server = server
        self._died = died
        self.meter: EnergyMeter | None = None
        """What reads the server's energy, where the configured meter must not."""
        self.server: LocalServer | None = None
        """Where it runs, where that is on this machine."""

    async def generate(self, request: Request, on_headers: HeadersCallback) -> Completion:
        """Stream one chat completion; see `EngineSession.generate`."""
        try:
            async with asyncio.timeout(self._server.timeout_s):
                return await self._stream(request, on_headers)
        except TimeoutError:
            raise RequestFailed(
                "timeout", f"no whole answer within {self._server.timeout_s:g} s"
            ) from None
        except RequestFailed as failure:
            if failure.status == "error":
                await self._raise_if_died()
            raise
        except (aiohttp.ClientError, OSError) as error:
            await self._raise_if_died()
            reason = f"connection failed: {type(error).__name__}: {error}"
            raise RequestFailed("error", message_of(reason.encode())) from None

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

    async def _stream(self, request: Request, on_headers: HeadersCallback) -> Completion:
        url = f"{self._server.root_url}/v1/chat/completions"
        body = json.dumps(body_of(request, self._server)).encode()
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        async with self._pool.post(
            url, data=body, headers=headers, allow_redirects=False
        ) as response:
            on_headers(response.headers.getall(HEADER, []))
            if response.status != 200:
                raise http_failure(response.status, await response.read())
            if response.content_type != "text/event-stream":
                message = message_of(await response.read())
                raise RequestFailed("error", f"{response.content_type}, not a stream: {message}")
            answer = await _read_answer(response.content)
        return answer.completion(request.forced_output_tokens)

    async def _raise_if_died(self) -> None:
        why = await self._died()
        if why is not None:
            raise EngineDied(why)


async def _read_answer(content: aiohttp.StreamReader) -> StreamedAnswer:
    """Read a response's body to `[DONE]` or to its end."""
    loop = asyncio.get_running_loop()
    parser, answer = EventParser(), StreamedAnswer()
    try:
        # To the end, past [DONE]: only then the connection goes back to the pool.
        async for chunk in content.iter_any():
            now_s = loop.time()
            for event in parser.feed(chunk):
                answer.take(event, now_s)
    except aiohttp.ClientError:
        if not answer.done:
            raise
    now_s = loop.time()
    for event in parser.finish():
        answer.take(event, now_s)
    return answer

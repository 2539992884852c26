"""Attaches to any running OpenAI-compatible server: `engine=openai engine.base_url=...`."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

import aiohttp

from bellman.corpus.base import Corpus
from bellman.energy.base import LocalServer
from bellman.energy.none import UnmeasuredEnergy
from bellman.engines.base import Control
from bellman.engines.openai.child import child_server
from bellman.engines.openai.connections import open_pool
from bellman.engines.openai.control import put_control, read_state
from bellman.engines.openai.failures import http_failure
from bellman.engines.openai.fetch import NoReply, fetch
from bellman.engines.openai.kv_cache import read_kv_cache
from bellman.engines.openai.prefix_cache import PrefixCache, choose
from bellman.engines.openai.session import ChatServer, OpenAISession
from bellman.errors import RunError, require
from bellman.foreign_text import printable
from bellman.schema import Positive, schema
from bellman.source import Source

OURS = (
    *("model", "messages", "max_tokens", "min_tokens", "ignore_eos", "stream", "stream_options"),
    *("n", "cache_salt"),
)
"""Entries of a request's body that the client decides (one answer, of its own episode)."""
LONGEST_NAME = 200
"""Characters of a model's name that records keep."""
REMOTE = "the server may run on another machine, whose energy cannot be read from here"
IDLE_DEADLINE_S = 60.0
"""How long an episode waits for the requests before it to leave the server."""


@schema
class OpenAIEngine:
    """Configuration of a server that somebody else started; `create` makes the engine."""

    source: ClassVar[Source] = "measured"

    base_url: str
    """With or without `/v1` at the end."""
    model: str | None = None
    """The model's name at the server; None asks for the first of GET /v1/models."""
    api_key_env: str | None = None
    """Environment variable that holds the API key, where the server wants one."""
    request_timeout_s: Positive = 600.0
    """Deadline of a request, from sending it to its last token."""
    sampling: dict[str, Any] = field(default_factory=dict)
    """Further entries of every request's body: temperature, seed, top_p..."""
    prefix_cache: str = "auto"
    """What keeps one arm's prompts from being found in the cache by the next: `reset` (vLLM in
    development mode), `salt` (`cache_salt` where the server takes it, else a line before every
    prompt), `disabled` (the server was started without a prefix cache); `auto` takes the first that
    works."""
    gateway: bool = True
    """Put our gateway in front of a server without the middleware. False takes such a server's own
    signal as it comes: its law is not ours and no arm switches it."""

    def __post_init__(self) -> None:
        """Check the values."""
        good_url = is_root(self.base_url)
        require(good_url, "base_url", self.base_url, "must be like http://127.0.0.1:8000/v1")
        for name in OURS:
            require(name not in self.sampling, f"sampling.{name}", "", "is set by the client")

    @property
    def root_url(self) -> str:
        """The server's URL without `/v1`."""
        return self.base_url.rstrip("/").removesuffix("/v1")

    def create(self, corpus: Corpus, logs: Path | None = None) -> "AttachedEngine":
        """Make the engine; it is the same for every corpus, and its server's logs are not ours."""
        return AttachedEngine(self)


class AttachedEngine:
    """A running server, controlled by its middleware or by our gateway; see `Engine`."""

    def __init__(self, config: OpenAIEngine) -> None:
        self.config = config
        self._stack = AsyncExitStack()
        self._pool: aiohttp.ClientSession | None = None
        self._server: ChatServer | None = None
        self._prefix_cache: PrefixCache | None = None
        self._controlled = False
        self._facts: dict[str, object] = {}

    @property
    def source(self) -> Source:
        """A real server is measured."""
        return "measured"

    @property
    def response_source(self) -> str:
        """The model at the server."""
        return str(self._facts.get("model") or self.config.model or "the server's model")

    @property
    def length_compliance(self) -> None:
        """No bank of this server's answers is recorded."""
        return None

    @property
    def answers_concise(self) -> bool:
        """A model answers any prompt."""
        return True

    @property
    def loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop] | None:
        """Real time: the normal loop."""
        return None

    def describe(self) -> dict[str, object]:
        """Return the server, model and sampling, and what the server said of itself."""
        return {
            "engine": "openai",
            "base_url": self.config.base_url,
            "model": self.config.model,
            "request_timeout_s": self.config.request_timeout_s,
            "sampling": dict(self.config.sampling),
            **self._facts,
        }

    def count_tokens(self, text: str) -> int | None:
        """Return None: the server's tokenizer is not at hand."""
        return None

    async def __aenter__(self) -> Self:
        """Check that the server answers; start a gateway if it has no middleware of ours."""
        try:
            await self._attach()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the pool and end the gateway."""
        await self._stack.aclose()

    @asynccontextmanager
    async def session(self, control: Control) -> AsyncIterator[OpenAISession]:
        """Open an episode on an idle server: law restarted, earlier prompts out of its cache."""
        assert self._pool is not None and self._server is not None, "use it in `async with`"
        assert self._prefix_cache is not None
        if self._controlled:
            await start_episode(self._pool, self._server, control)
        cache = await self._prefix_cache.begin()
        session = OpenAISession(self._pool, self._server, cache=cache)
        if is_local(self.config.root_url):
            session.server = LocalServer(port=port_of(self.config.root_url))
        else:
            session.meter = UnmeasuredEnergy(REMOTE)
        yield session

    async def _attach(self) -> None:
        key = self._api_key()
        self._pool = await self._stack.enter_async_context(open_pool(key))
        models = await self._models(self._pool)
        model = self.config.model or (models[0] if models else None)
        if model is None:
            raise RunError(f"{self.config.root_url} names no model: give engine.model")
        has_middleware = await read_state(self._pool, self.config.root_url) is not None
        root_url = self.config.root_url
        uses_gateway = self.config.gateway and not has_middleware
        self._controlled = uses_gateway or has_middleware
        if uses_gateway:
            root_url = await self._stack.enter_async_context(_gateway(root_url))
        names = [printable(name, LONGEST_NAME) for name in models]
        self._facts |= {"model": printable(model, LONGEST_NAME), "models": names}
        self._facts["gateway"] = uses_gateway
        kv_cache = await read_kv_cache(self._pool, self.config.root_url)
        self._prefix_cache = await choose(
            self._pool,
            self.config.root_url,
            self.config.prefix_cache,
            known_off=kv_cache.get("prefix_caching") is False,
        )
        self._facts |= kv_cache | self._prefix_cache.describe()
        self._facts["law_switched_per_arm"] = self._controlled
        self._server = ChatServer(
            root_url, model, self.config.request_timeout_s, self.config.sampling
        )

    def _api_key(self) -> str | None:
        name = self.config.api_key_env
        if name is None:
            return None
        key = os.environ.get(name)
        if not key:
            raise RunError(f"engine.api_key_env={name}: this variable is not set")
        return key

    async def _models(self, pool: aiohttp.ClientSession) -> list[str]:
        """Return the server's models; raises `RunError` where nothing answers at the address."""
        url = f"{self.config.root_url}/v1/models"
        try:
            reply = await fetch(pool, "GET", url)
        except NoReply as error:
            raise RunError(f"no OpenAI-compatible server answers at {url}: {error}") from None
        if reply.status not in (200, 404):
            refusal = http_failure(reply.status, reply.body, reply.location)
            raise RunError(f"the server refuses {url}: {refusal}")
        return model_names(reply.json())


def model_names(value: object) -> list[str]:
    """Return the names in an answer of GET /v1/models, empty where it has another shape."""
    entries = value.get("data") if isinstance(value, dict) else None
    listed = entries if isinstance(entries, list) else []
    ids = [entry.get("id") for entry in listed if isinstance(entry, dict)]
    return [name for name in ids if isinstance(name, str) and name]


def is_root(url: str) -> bool:
    """Whether paths can be put behind a URL: it has a host and a port that can be, and no query."""
    try:
        parts = urlsplit(url)
        placed = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return placed and not parts.query and not parts.fragment and not re.search(r"\s", url)


def is_local(url: str) -> bool:
    """Whether a URL names this machine by a loopback address."""
    host = urlsplit(url).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


def port_of(url: str) -> int:
    """Return the port that a URL names or means."""
    parts = urlsplit(url)
    return parts.port or {"https": 443}.get(parts.scheme, 80)


def _gateway(upstream_url: str) -> AbstractAsyncContextManager[str]:
    """Start our gateway in front of a server that has no middleware of ours."""
    return child_server(
        ("-m", "bellman.gateway", "--upstream", upstream_url, "--port", "0", "--with-parent"),
        {"BELLMAN_CONTROL_ALLOWED": "1"},
    )


async def start_episode(pool: aiohttp.ClientSession, server: ChatServer, control: Control) -> None:
    """Wait until the server is idle, then restart its law; raises `RunError` if it stays busy."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + IDLE_DEADLINE_S
    while (outstanding := await _outstanding(pool, server.root_url)) > 0:
        if loop.time() > deadline_s:
            raise RunError(
                f"{server.root_url} is not idle: {outstanding} requests outstanding "
                f"after {IDLE_DEADLINE_S:g} s; end its other clients"
            )
        await asyncio.sleep(0.2)
    await put_control(pool, server.root_url, control)


async def _outstanding(pool: aiohttp.ClientSession, root_url: str) -> int:
    state = await read_state(pool, root_url)
    return state.observation.outstanding if state is not None and state.observation else 0

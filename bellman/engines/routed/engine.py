"""Several engines that serve as one: `arms.spillover.engine`, or `engine` of a whole run."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Self

from bellman.app.length_compliance import LengthCompliance
from bellman.corpus.base import Corpus
from bellman.engines.base import Control, Engine
from bellman.engines.routed.base import Route
from bellman.engines.routed.session import Replica, RoutedSession
from bellman.errors import require
from bellman.schema import schema
from bellman.source import Source


@schema
class RoutedEngine:
    """Configuration of several engines, all simulated or all measured; `create` makes them.

    Each runs the arm's law and admission for itself. Their energy is that of all, idle ones too.
    """

    engines: dict[str, Any]
    """Options of `engine` by the names that records give them."""
    route: Any
    """Which of them a request is sent to."""

    def __post_init__(self) -> None:
        """Check that there are several of one kind, and a route."""
        names = ", ".join(self.engines)
        require(len(self.engines) > 1, "engines", names, "must be two or more")
        sources = {name: getattr(one, "source", None) for name, one in self.engines.items()}
        for name, source in sources.items():
            require(source is not None, f"engines.{name}", source, "must be an option of engine")
            kind = f"must be {self.source}, as the first is"
            require(source == self.source, f"engines.{name}", source, kind)
        is_route = callable(getattr(self.route, "order", None))
        require(is_route, "route", self.route, "must be a class of bellman.engines.routed")

    @property
    def source(self) -> Source:
        """The first one's."""
        first = next(iter(self.engines.values()))
        source: Source = first.source
        return source

    def create(self, corpus: Corpus, logs: Path | None = None) -> "RunningRoutedEngine":
        """Make all of them; the logs of each go into a folder of its name."""
        made = {}
        for name, config in self.engines.items():
            folder = None if logs is None else logs / name
            made[name] = config.create(corpus, folder)
        return RunningRoutedEngine(made, self.route)


class RunningRoutedEngine:
    """See `bellman.engines.base.Engine`."""

    def __init__(self, engines: Mapping[str, Engine], route: Route) -> None:
        self._engines = engines
        self._route = route
        self._first = next(iter(engines.values()))
        self._stack = AsyncExitStack()

    @property
    def source(self) -> Source:
        """The first one's, as all have it."""
        return self._first.source

    @property
    def response_source(self) -> str:
        """What the answers of all are."""
        return " + ".join(dict.fromkeys(one.response_source for one in self._engines.values()))

    @property
    def length_compliance(self) -> LengthCompliance | None:
        """The first one's curve: requests are written for it."""
        return self._first.length_compliance

    @property
    def loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop] | None:
        """The first one's clock, as all have it."""
        return self._first.loop_factory

    def describe(self) -> dict[str, object]:
        """Return what each says of itself."""
        engines = {name: engine.describe() for name, engine in self._engines.items()}
        return {"engine": "routed", "route": type(self._route).__name__, "engines": engines}

    def count_tokens(self, text: str) -> int | None:
        """Count as the first one does."""
        return self._first.count_tokens(text)

    async def __aenter__(self) -> Self:
        """Start one after the other; those that run end where the next cannot start."""
        try:
            for engine in self._engines.values():
                await self._stack.enter_async_context(engine)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Stop all."""
        await self._stack.aclose()

    @asynccontextmanager
    async def session(self, control: Control) -> AsyncIterator[RoutedSession]:
        """Open an episode on all of them, each under a law and an admission of its own."""
        async with AsyncExitStack() as stack:
            replicas = [
                Replica(name, await stack.enter_async_context(engine.session(control)))
                for name, engine in self._engines.items()
            ]
            yield RoutedSession(replicas, self._route)

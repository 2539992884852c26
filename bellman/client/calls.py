"""The SDK's generating calls, with the request filled in and the level taken off the response.

Each is made by the SDK's own `with_raw_response`, which shows the headers: of a stream as soon as
they arrive. A call raises and returns what it would without us.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from functools import wraps
from inspect import isawaitable
from typing import Any

from openai import APIStatusError

from bellman.client.fill import with_token_limit, with_words
from bellman.client.word_budget import WordBudget
from bellman.signal import HEADER

Call = Callable[..., Any]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Terms:
    """What a client was adapted with."""

    word_budget: WordBudget
    placeholder: str | None
    fill_max_tokens: bool

    def filled(self, request: Mapping[str, Any], limit: str) -> dict[str, Any]:
        """Return the request that is sent now; `limit` is what its call calls `max_tokens`."""
        words = self.word_budget.words
        filled = dict(request)
        if self.placeholder is not None:
            filled = with_words(filled, words, self.placeholder)
        if self.fill_max_tokens:
            filled = with_token_limit(filled, limit, self.word_budget.max_tokens(words))
        return filled

    def receive(self, response: Any) -> None:
        """Take the level; the answer is there, and nothing in its headers may cost it."""
        try:
            values = response.headers.get_list(HEADER)
        except Exception as error:
            logger.warning("the response's headers cannot be read: %r", error)
            values = []
        self.word_budget.receive(values)

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Take the level that an error's response brings."""
        try:
            yield
        except APIStatusError as error:
            self.receive(error.response)
            raise


@dataclass(frozen=True)
class SyncCalls:
    """Adapts the calls of one resource of an `openai.OpenAI`."""

    terms: Terms
    limit: str

    def parsed(self, raw_call: Call) -> Call:
        """Return the call as `create` is made, from its form under `with_raw_response`."""
        adapted_raw = self.raw(raw_call)

        @wraps(raw_call)
        def adapted(*args: Any, **request: Any) -> Any:
            return adapted_raw(*args, **request).parse()

        return adapted

    def raw(self, raw_call: Call) -> Call:
        """Return the call under `with_raw_response`."""

        @wraps(raw_call)
        def adapted(*args: Any, **request: Any) -> Any:
            with self.terms.refusals():
                response = raw_call(*args, **self.terms.filled(request, self.limit))
            self.terms.receive(response)
            return response

        return adapted

    def streaming(self, streaming_call: Call) -> Call:
        """Return the call under `with_streaming_response`."""

        @wraps(streaming_call)
        def adapted(*args: Any, **request: Any) -> AbstractContextManager[Any]:
            return self._opened(streaming_call(*args, **self.terms.filled(request, self.limit)))

        return adapted

    @contextmanager
    def _opened(self, manager: AbstractContextManager[Any]) -> Iterator[Any]:
        with ExitStack() as stack:
            with self.terms.refusals():
                response = stack.enter_context(manager)
            self.terms.receive(response)
            yield response


@dataclass(frozen=True)
class AsyncCalls:
    """Adapts the calls of one resource of an `openai.AsyncOpenAI`."""

    terms: Terms
    limit: str

    def parsed(self, raw_call: Call) -> Call:
        """Return the call as `create` is made, from its form under `with_raw_response`."""
        adapted_raw = self.raw(raw_call)

        @wraps(raw_call)
        async def adapted(*args: Any, **request: Any) -> Any:
            parsed = (await adapted_raw(*args, **request)).parse()
            # The SDK announces that this will be awaited in one of its next versions.
            return await parsed if isawaitable(parsed) else parsed

        return adapted

    def raw(self, raw_call: Call) -> Call:
        """Return the call under `with_raw_response`."""

        @wraps(raw_call)
        async def adapted(*args: Any, **request: Any) -> Any:
            with self.terms.refusals():
                response = await raw_call(*args, **self.terms.filled(request, self.limit))
            self.terms.receive(response)
            return response

        return adapted

    def streaming(self, streaming_call: Call) -> Call:
        """Return the call under `with_streaming_response`."""

        @wraps(streaming_call)
        def adapted(*args: Any, **request: Any) -> AbstractAsyncContextManager[Any]:
            return self._opened(streaming_call(*args, **self.terms.filled(request, self.limit)))

        return adapted

    @asynccontextmanager
    async def _opened(self, manager: AbstractAsyncContextManager[Any]) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            with self.terms.refusals():
                response = await stack.enter_async_context(manager)
            self.terms.receive(response)
            yield response

"""Adapts a client of the `openai` package: `adapt(openai.OpenAI(), task="summary")`."""

from types import TracebackType
from typing import Any, Self, overload

import openai
from openai import resources
from openai.resources.responses import AsyncResponses, Responses

from bellman.adaptation.base import Adaptation, form_of
from bellman.adaptation.linear import Linear
from bellman.app.budget import BudgetRules
from bellman.client.calls import AsyncCalls, SyncCalls, Terms
from bellman.client.resources import LIMITS, Chat, Resource, attribute
from bellman.client.word_budget import WordBudget
from bellman.errors import require

LINEAR = Linear(alpha_min=0.25)
RULES: dict[str, Any] = {
    "ladder_ratio": 2**0.5,
    "words_per_token": 0.744,
    "guard_ratio": 2.0,
    "guard_margin_tokens": 16,
    "floor_tokens": {"summary": 100, "answer": 50},
}
"""As `application` in conf/config.yaml, the experiments' own; what each means: `BudgetRules`."""


class _Adapted:
    """A client of the SDK whose generating calls are adapted; all else is its own."""

    def __init__(self, client: Any, terms: Terms) -> None:
        self._client = client
        self._terms = terms
        kind = AsyncCalls if isinstance(client, openai.AsyncOpenAI) else SyncCalls
        calls = {name: kind(terms, limit) for name, limit in LIMITS.items()}
        vars(self).update(
            chat=Chat(client.chat, calls["chat.completions"]),
            completions=Resource(client.completions, calls["completions"]),
            responses=Resource(client.responses, calls["responses"]),
        )

    @property
    def word_budget(self) -> WordBudget:
        """What this client asks for now, and on which level."""
        return self._terms.word_budget

    def with_options(self, **options: Any) -> Self:
        """Return the SDK's copy of the client with other options, on the same word budget."""
        return type(self)(self._client.with_options(**options), self._terms)

    copy = with_options

    def __getattr__(self, name: str) -> Any:
        """Return what is not adapted from the client itself."""
        return attribute(self, "_client", name)


class AdaptedOpenAI(_Adapted):
    """An `openai.OpenAI` that asks for as many words as the server's congestion allows."""

    chat: resources.Chat
    completions: resources.Completions
    responses: Responses

    def __enter__(self) -> Self:
        self._client.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._client.__exit__(kind, error, traceback)


class AdaptedAsyncOpenAI(_Adapted):
    """An `openai.AsyncOpenAI` that asks for as many words as the server's congestion allows."""

    chat: resources.AsyncChat
    completions: resources.AsyncCompletions
    responses: AsyncResponses

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._client.__aexit__(kind, error, traceback)


@overload
def adapt(
    client: openai.OpenAI,
    *,
    task: str = ...,
    default_words: int = ...,
    adaptation: Adaptation = ...,
    placeholder: str | None = ...,
    fill_max_tokens: bool = ...,
    forget_after_s: float = ...,
    **rules: Any,
) -> AdaptedOpenAI: ...
@overload
def adapt(
    client: openai.AsyncOpenAI,
    *,
    task: str = ...,
    default_words: int = ...,
    adaptation: Adaptation = ...,
    placeholder: str | None = ...,
    fill_max_tokens: bool = ...,
    forget_after_s: float = ...,
    **rules: Any,
) -> AdaptedAsyncOpenAI: ...
def adapt(
    client: openai.OpenAI | openai.AsyncOpenAI,
    *,
    task: str = "summary",
    default_words: int = 300,
    adaptation: Adaptation = LINEAR,
    placeholder: str | None = "{words}",
    fill_max_tokens: bool = False,
    forget_after_s: float = 60.0,
    **rules: Any,
) -> AdaptedOpenAI | AdaptedAsyncOpenAI:
    """Return a client that takes the level off every response and fills its requests by it.

    The calls of `chat.completions`, `completions` and `responses` that generate have `placeholder`
    in their texts replaced by the words to ask for, and with `fill_max_tokens` a token limit where
    they name none. `rules` are further entries of `BudgetRules` than the experiments' own. A level
    received more than `forget_after_s` ago counts as none. Raises `ConfigError`.
    """
    by_words = "must shorten by words (bellman.adaptation)"
    require(form_of(adaptation) == "words", "adaptation", adaptation, by_words)
    require(placeholder != "", "placeholder", placeholder, "must be a text or None")
    require(forget_after_s > 0, "forget_after_s", forget_after_s, "must be greater than 0")
    words = BudgetRules(task=task, default_words=default_words, **{**RULES, **rules})
    terms = Terms(
        WordBudget(words, adaptation, forget_after_s=forget_after_s),
        placeholder,
        fill_max_tokens,
    )
    if isinstance(client, openai.AsyncOpenAI):
        return AdaptedAsyncOpenAI(client, terms)
    return AdaptedOpenAI(client, terms)

"""The parts of an adapted client whose calls generate; all else of them is the SDK's own."""

from functools import partial
from typing import Any

from bellman.client.calls import AsyncCalls, Call, SyncCalls

GENERATING = ("create", "parse")
LIMITS = {
    "chat.completions": "max_tokens",
    "completions": "max_tokens",
    "responses": "max_output_tokens",
}
"""The resources that generate, with the name of the token limit in their calls."""


class Resource:
    """`chat.completions`, `completions` or `responses`, adapted."""

    def __init__(self, resource: Any, calls: SyncCalls | AsyncCalls) -> None:
        self._resource = resource
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        """Return the resource's attribute, adapted where it generates."""
        own = attribute(self, "_resource", name)
        if name in GENERATING:
            return self._calls.parsed(getattr(self._resource.with_raw_response, name))
        if name == "with_raw_response":
            return Form(own, self._calls.raw)
        if name == "with_streaming_response":
            return Form(own, self._calls.streaming)
        if name == "stream":  # the SDK's helper around `create`: ours, so that it is adapted
            return partial(type(self._resource).stream, self)
        return own


class Form:
    """What `with_raw_response` or `with_streaming_response` of a resource returns, adapted."""

    def __init__(self, form: Any, adapt: Any) -> None:
        self._form = form
        self._adapt = adapt

    def __getattr__(self, name: str) -> Any:
        """Return the form's attribute, adapted where it generates."""
        own: Call = attribute(self, "_form", name)
        return self._adapt(own) if name in GENERATING else own


class Chat:
    """`chat`, with its `completions` adapted."""

    def __init__(self, chat: Any, calls: SyncCalls | AsyncCalls) -> None:
        self._chat = chat
        self.completions = Resource(chat.completions, calls)

    def __getattr__(self, name: str) -> Any:
        """Return the SDK's own attribute."""
        return attribute(self, "_chat", name)


def attribute(proxy: object, inner: str, name: str) -> Any:
    """Return an attribute of what `proxy` keeps under `inner`."""
    if name.startswith("__"):  # asked for by `copy` before there is anything inside
        raise AttributeError(name)
    return getattr(vars(proxy)[inner], name)

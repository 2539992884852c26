"""Sends a request to the first upstream that is not congested, and on where that one refuses."""

from collections.abc import Callable, Mapping, Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bellman.gateway.proxy import UNREACHED

REFUSALS = frozenset((429, 503))
"""Statuses by which an upstream, or the admission before it, says that it will not serve now."""

Levels = Callable[[], Sequence[float | None]]


def in_order(levels: Sequence[float | None], above: float) -> list[int]:
    """Return the upstreams, by their places, in the order in which they are asked.

    First those up to the level `above`, as they are given; then the more congested, by their
    levels; last those without a level, whose load nobody knows.
    """

    def rank(place: int) -> tuple[int, float]:
        level = levels[place]
        if level is None:
            return 2, 0.0
        return (0, 0.0) if level <= above else (1, level)

    return sorted(range(len(levels)), key=rank)  # a stable sort: ties stay as they are given


class Spillover:
    """An ASGI app before those of several upstreams.

    What refuses before the first byte of its answer, or cannot be reached, is passed over, and the
    last upstream's answer is the client's whatever it is. An answer that has begun stays.
    """

    def __init__(
        self,
        upstreams: Mapping[str, ASGIApp],
        levels: Levels,
        above: float,
        on_spilled: Callable[[str], None],
    ) -> None:
        self._names = list(upstreams)
        self._apps = list(upstreams.values())
        self._levels = levels
        self._above = above
        self._on_spilled = on_spilled

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        *first, last = in_order(self._levels(), self._above)
        upload = _Upload(receive)
        for place in first:
            # What one upstream's app writes into the scope is none of the next one's.
            if await _answers(self._apps[place], dict(scope), upload.again(), send):
                return
            self._on_spilled(self._names[place])
        await self._apps[last](scope, upload.again() if first else receive, send)


async def _answers(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> bool:
    """Let an app answer unless it refuses; say whether it did."""
    refused = False

    async def send_unless_refused(message: Message) -> None:
        nonlocal refused
        if message["type"] == "http.response.start":
            refused = message["status"] in REFUSALS or UNREACHED in scope
        if not refused:
            await send(message)

    await app(scope, receive, send_unless_refused)
    return not refused


class _Upload:
    """Remembers a request's body, so that it can be sent again."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._messages: list[Message] = []

    def again(self) -> Receive:
        """Return a `receive` that begins with what was received before."""
        read = 0

        async def receive() -> Message:
            nonlocal read
            if read == len(self._messages):
                message = await self._receive()
                if message["type"] != "http.request":
                    return message
                self._messages.append(message)
            read += 1
            return self._messages[read - 1]

        return receive

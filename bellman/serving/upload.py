"""Takes in the whole body of a request, within a size and a time.

A request is outstanding when its body is there: until then it occupies a socket, not the engine.
"""

import asyncio

from starlette.types import Message, Receive, Scope

from bellman.serving.refusal import ConnectionBroken, RequestRefused

LONGEST_BYTES = 32 * 2**20
"""A longer body is refused (413): a million tokens of text are about 4 MiB, images are larger."""
DEADLINE_S = 20.0
"""A body that is not whole so long after its head is refused (408)."""


async def read_upload(scope: Scope, receive: Receive) -> bytes:
    """Return the body; raises `RequestRefused`, and `ConnectionBroken` where it is cut short."""
    for name, value in scope["headers"]:
        if name == b"content-length" and int(value) > LONGEST_BYTES:
            raise _too_long()
    parts: list[bytes] = []
    size, more = 0, True
    try:
        async with asyncio.timeout(DEADLINE_S):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ConnectionBroken
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > LONGEST_BYTES:
                    raise _too_long()
                more = message.get("more_body", False)
    except TimeoutError:
        reason = f"the request's body was not whole within {DEADLINE_S:g} s"
        raise RequestRefused(408, "RequestTimeout", reason) from None
    return b"".join(parts)


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that hands out the body that was read, and then what comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again


def _too_long() -> RequestRefused:
    message = f"the request's body is longer than {LONGEST_BYTES} bytes"
    return RequestRefused(413, "RequestEntityTooLarge", message)

"""Which upstream a request goes to, and where it goes when that one refuses."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bellman.gateway.proxy import UNREACHED
from bellman.gateway.spillover import Spillover, in_order

LEVELS = st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=6)


@given(LEVELS, st.floats(0, 1))
def test_every_upstream_has_its_place(levels: list[float | None], above: float) -> None:
    order = in_order(levels, above)
    assert sorted(order) == list(range(len(levels)))
    ranks = []
    for place in order:
        level = levels[place]
        if level is None:
            ranks.append((3, 0.0, place))
        elif level <= above:
            ranks.append((1, 0.0, place))
        else:
            ranks.append((2, level, place))
    assert ranks == sorted(ranks)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([0.0, 0.0], [0, 1]),
        ([0.8, 0.0], [0, 1]),
        ([0.81, 0.8], [1, 0]),
        ([1.0, 0.9, 0.95], [1, 2, 0]),
        ([None, 1.0], [1, 0]),
        ([None, None], [0, 1]),
    ],
)
def test_the_first_that_is_not_congested(levels: list[float | None], expected: list[int]) -> None:
    assert in_order(levels, 0.8) == expected


def answering(status: int, bodies: list[bytes]) -> ASGIApp:
    """Return an app that reads the body and answers with a status."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        bodies.append(await Request(scope, receive).body())
        await Response(b"whole answer", status)(scope, receive, send)

    return app


async def unreached(scope: Scope, receive: Receive, send: Send) -> None:
    scope[UNREACHED] = True
    await Response(b"no", 502)(scope, receive, send)


async def breaking(scope: Scope, receive: Receive, send: Send) -> None:
    async def pieces() -> Any:
        yield b"a piece"
        raise ConnectionResetError("cut")

    await StreamingResponse(pieces())(scope, receive, send)


async def ask(apps: Sequence[ASGIApp], pieces: Sequence[bytes] = (b"bo", b"dy")) -> Any:
    """Send a request in pieces; return the status, the body and which apps were passed over."""
    sent: list[Message] = []
    spilled: list[str] = []
    parts: list[Message] = [
        {"type": "http.request", "body": piece, "more_body": number < len(pieces) - 1}
        for number, piece in enumerate(pieces)
    ]

    async def receive() -> Message:
        return parts.pop(0) if parts else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    named = {str(place): app for place, app in enumerate(apps)}
    spillover = Spillover(named, lambda: [0.0] * len(apps), 0.8, spilled.append)
    scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    try:
        await spillover(scope, receive, send)
    finally:
        body = b"".join(message.get("body", b"") for message in sent[1:])
    starts = [message["status"] for message in sent if message["type"] == "http.response.start"]
    return starts, body, spilled


@pytest.mark.parametrize("refusal", [429, 503])
async def test_a_refusal_is_not_the_clients(refusal: int) -> None:
    bodies: list[bytes] = []
    apps = [answering(refusal, bodies), answering(refusal, bodies), answering(200, bodies)]
    assert await ask(apps) == ([200], b"whole answer", ["0", "1"])
    assert bodies == [b"body"] * 3


@pytest.mark.parametrize("status", [200, 400, 404, 413, 500, 502, 504])
async def test_any_other_answer_is(status: int) -> None:
    bodies: list[bytes] = []
    apps = [answering(status, bodies), answering(200, bodies)]
    assert await ask(apps) == ([status], b"whole answer", [])
    assert len(bodies) == 1


async def test_the_last_refusal_is_the_answer() -> None:
    assert await ask([answering(429, []), answering(503, [])]) == ([503], b"whole answer", ["0"])


async def test_what_cannot_be_reached_is_passed_over_but_as_the_last() -> None:
    assert await ask([unreached, answering(200, [])]) == ([200], b"whole answer", ["0"])
    assert await ask([unreached, unreached]) == ([502], b"no", ["0"])


async def test_an_answer_that_has_begun_stays() -> None:
    bodies: list[bytes] = []
    with pytest.raises(ConnectionResetError):
        await ask([breaking, answering(200, bodies)])
    assert bodies == []


async def test_a_client_that_leaves_is_told_to_each() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        with pytest.raises(ClientDisconnect):
            await Request(scope, receive).body()
        await Response(status_code=503)(scope, receive, send)

    starts, _, spilled = await ask([app, app], pieces=[])
    assert (starts, spilled) == ([503], ["0"])

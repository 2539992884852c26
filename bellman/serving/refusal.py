"""Requests that are refused before the server sees them, in OpenAI's form of an error."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

LINGER_S = 1.0
"""A refused upload is dropped as it comes for so long: its sender may read the answer only then."""


class RequestRefused(Exception):
    """A request that must not go further, with the status of its answer."""

    def __init__(
        self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.headers = headers


class ConnectionBroken(Exception):
    """One side left in the middle: there is no answer, or the one that began stays incomplete."""


def error_response(
    status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an error in OpenAI's form, as vLLM writes it."""
    body = {"error": {"message": message, "type": kind, "param": None, "code": status}}
    return JSONResponse(body, status, headers)


async def answer_refused(
    refused: RequestRefused, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer a refused request; one at fault loses its connection: its upload may be unfinished."""
    response = error_response(refused.status, refused.kind, str(refused), refused.headers)
    if refused.status >= 500:
        await response(scope, receive, send)
        return
    headers = [*response.raw_headers, (b"connection", b"close")]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": True})
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S):
            while (await receive()).get("more_body"):
                pass
    await send({"type": "http.response.body", "body": b"", "more_body": False})

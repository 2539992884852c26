"""The proxy: passes requests up and responses down as they come, byte for byte."""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress

import aiohttp
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from yarl import URL

from bellman.open_files import allow_open_files

HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
"""Headers of one connection, not of the message (RFC 9110, section 7.6.1)."""
SET_BY_CLIENT = frozenset((b"host", b"content-length", b"expect"))
"""Request headers that the upstream connection writes itself."""

logger = logging.getLogger(__name__)

Headers = list[tuple[bytes, bytes]]


def open_upstream_pool() -> aiohttp.ClientSession:
    """Open the pool to the upstream: no limit, no cookies, nothing decoded on the way."""
    allow_open_files()
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=2.0),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent", "Content-Type"),
    )


def end_to_end(headers: Iterable[tuple[bytes, bytes]], drop: frozenset[bytes]) -> Headers:
    """Return the headers without hop-by-hop ones, those that Connection names, and `drop`."""
    headers = list(headers)
    named = {
        name.strip().lower()
        for key, value in headers
        if key.lower() == b"connection"
        for name in value.split(b",")
    }
    hop = HOP_BY_HOP | drop | named
    return [(name, value) for name, value in headers if name.lower() not in hop]


class Proxy:
    """An ASGI app that forwards every HTTP request to one upstream server."""

    def __init__(self, pool: aiohttp.ClientSession, upstream_url: str) -> None:
        self._pool = pool
        self._upstream_url = upstream_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward one request; a client that goes away ends its request at the upstream."""
        if scope["type"] != "http":
            return
        body = await _body(receive)
        forward = asyncio.create_task(self._forward(scope, body, send))
        gone = asyncio.create_task(_disconnect(receive))
        try:
            await asyncio.wait((forward, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            forward.cancel()  # does nothing when it is done
            await asyncio.gather(gone, forward, return_exceptions=True)
        if not forward.cancelled():
            forward.result()

    async def _forward(self, scope: Scope, body: bytes, send: Send) -> None:
        path = scope.get("raw_path") or scope["path"].encode()
        query = b"?" + scope["query_string"] if scope.get("query_string") else b""
        started = False
        try:
            async with self._pool.request(
                scope["method"],
                URL(self._upstream_url + (path + query).decode("ascii"), encoded=True),
                headers=[
                    (name.decode("latin-1"), value.decode("latin-1"))
                    for name, value in end_to_end(scope["headers"], SET_BY_CLIENT)
                ],
                data=body or None,
                allow_redirects=False,
            ) as response:
                headers = end_to_end(response.raw_headers, frozenset())
                started = True
                await send(
                    {"type": "http.response.start", "status": response.status, "headers": headers}
                )
                async for chunk in response.content.iter_any():
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (aiohttp.ClientError, OSError) as error:
            reason = f"upstream {self._upstream_url} failed: {type(error).__name__}: {error}"
            logger.warning(reason)
            # A response that has begun stays incomplete, so the server cuts the connection and
            # the client sees that the stream broke.
            if not started:
                await _bad_gateway(reason)(scope, _nothing, send)


def _bad_gateway(reason: str) -> JSONResponse:
    error = {"message": reason, "type": "BadGatewayError", "param": None, "code": 502}
    return JSONResponse({"error": error}, 502)


async def _body(receive: Receive) -> bytes:
    """Read the whole request body (a prompt, not a stream)."""
    parts = []
    more = True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


async def _disconnect(receive: Receive) -> None:
    """Return when the client has gone."""
    with suppress(OSError):
        while (await receive())["type"] != "http.disconnect":
            pass


async def _nothing() -> dict[str, object]:
    return {"type": "http.disconnect"}

"""The proxy: passes requests up and responses down as they come, byte for byte."""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress

import aiohttp
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from yarl import URL

from bellman.engines.openai.connections import (
    LARGEST_HEADER_BYTES,
    Connector,
    Exchange,
    exchange,
)
from bellman.errors import in_one_line
from bellman.gateway.target import METHODS, check_head, has_control_character, upstream_url
from bellman.open_files import allow_open_files
from bellman.redact import conceal
from bellman.serving.middleware import GENERATING
from bellman.serving.refusal import ConnectionBroken, RequestRefused
from bellman.serving.upload import read_upload

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
FINAL = range(200, 600)
"""Statuses that answer a request: not of an upgrade that nobody asked for."""
CONNECT_S = 10.0
NO_CONNECTION = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
UNREAD_S = 60.0
"""A client that takes nothing of its answer for so long is left: its request is no load."""

UNREACHED = "bellman.unreached"
"""Set in the scope of a request that did not get to the upstream: no connection came about."""

logger = logging.getLogger(__name__)

Headers = list[tuple[bytes, bytes]]


def open_upstream_pool() -> aiohttp.ClientSession:
    """Open the pool to the upstream: no limit, no cookies, nothing decoded on the way."""
    allow_open_files()
    return aiohttp.ClientSession(
        connector=Connector(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        max_line_size=LARGEST_HEADER_BYTES,
        max_field_size=LARGEST_HEADER_BYTES,
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
    """An ASGI app that forwards every HTTP request to one upstream server.

    Raises `RequestRefused` for what it does not forward, and `ConnectionBroken`.
    """

    def __init__(self, pool: aiohttp.ClientSession, upstream: URL) -> None:
        self._pool = pool
        self._upstream = upstream
        self._url = str(upstream).rstrip("/")
        self.resent = 0
        """Requests that were sent again, because the upstream had closed their connections."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward one request; a client that goes away ends its request at the upstream."""
        if scope["type"] != "http":
            return
        check_head(scope)
        if scope["method"] == "OPTIONS" and scope["raw_path"] == b"*":
            await Response(status_code=204, headers={"allow": METHODS})(scope, receive, send)
            return
        url = upstream_url(self._upstream, scope)
        body = await read_upload(scope, receive)
        try:
            async with asyncio.timeout(None) as while_connected:
                gone = asyncio.create_task(_disconnect(receive, while_connected))
                try:
                    await self._forward(url, scope, body, send)
                finally:
                    gone.cancel()
        except TimeoutError:
            if not while_connected.expired():
                raise

    async def _forward(self, url: URL, scope: Scope, body: bytes, send: Send) -> None:
        started = False
        try:
            async with await self._request(url, scope, body) as response:
                headers = end_to_end(response.raw_headers, frozenset())
                if response.status not in FINAL:
                    raise aiohttp.ClientError(f"status {response.status}")
                if has_control_character(headers):
                    raise aiohttp.ClientError("a header has control characters")
                started = True
                await send(
                    {"type": "http.response.start", "status": response.status, "headers": headers}
                )
                async for chunk in response.content.iter_any():
                    await _hand_down(chunk, send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (aiohttp.ClientError, OSError) as error:
            reason = conceal(f"upstream {self._url} failed: {in_one_line(error)}")
            logger.warning("%s", reason)
            # A response that has begun stays incomplete, so the server cuts the connection and
            # the client sees that the stream broke.
            if started:
                raise ConnectionBroken from error
            if isinstance(error, NO_CONNECTION):
                scope[UNREACHED] = True
            raise RequestRefused(502, "BadGatewayError", reason) from None

    async def _request(self, url: URL, scope: Scope, body: bytes) -> aiohttp.ClientResponse:
        """Send a request; one that only generates goes again if its connection was stale."""
        attempt = Exchange()
        try:
            return await self._send_up(url, scope, body, attempt)
        except (aiohttp.ClientError, OSError):
            generates = scope["method"] == "POST" and scope["path"].endswith(GENERATING)
            if not (generates and attempt.was_stale):
                raise
        self.resent += 1
        return await self._send_up(url, scope, body, Exchange(fresh=True))

    async def _send_up(
        self, url: URL, scope: Scope, body: bytes, attempt: Exchange
    ) -> aiohttp.ClientResponse:
        exchange.set(attempt)  # of this request's own task
        return await self._pool.request(
            scope["method"],
            url,
            headers=[
                (name.decode("ascii"), _text(value))
                for name, value in end_to_end(scope["headers"], SET_BY_CLIENT)
            ],
            data=body or None,
            allow_redirects=False,
        )


async def _hand_down(chunk: bytes, send: Send) -> None:
    """Send a part of an answer; raises `ConnectionBroken` where the client takes none of it."""
    try:
        async with asyncio.timeout(UNREAD_S):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except TimeoutError:
        logger.warning("a client took nothing of its answer for %g s", UNREAD_S)
        raise ConnectionBroken from None


def _text(value: bytes) -> str:
    """Return a header's value as the text that aiohttp, which writes UTF-8, turns into it again."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


async def _disconnect(receive: Receive, while_connected: asyncio.Timeout) -> None:
    """End what goes on while the client is connected when it has gone."""
    with suppress(OSError):
        while (await receive())["type"] != "http.disconnect":
            pass
    while_connected.reschedule(0.0)

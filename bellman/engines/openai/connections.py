"""The connection pool of an engine, which knows when a failed request may be sent once more.

A server closes idle connections when it likes; a request that leaves on one at that moment is lost
before it reached anybody. aiohttp repeats such requests by itself, but no POST.
"""

import asyncio
import functools
from contextvars import ContextVar
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

from bellman.open_files import allow_open_files

KEEP_ALIVE_S = 2.0
"""Idle connections close here first: uvicorn drops them after 5 s, in the middle of a reuse."""
STALE_S = 5.0
"""A connection that breaks later than this after a request was sent on it was not stale: the server
had the request, and may have worked on it."""
LARGEST_HEADER_BYTES = 64 * 2**10
"""Of one line of a response's head (aiohttp's own limit is 8 KiB)."""


class CountingHandler(ResponseHandler):
    """The connection, which counts what came over it, and ends an answer that breaks."""

    received_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Count and take the next bytes; what is no HTTP ends the answer that it is part of.

        aiohttp's compiled parser forgets the body at an error, so that who reads it would wait for
        ever.
        """
        self.received_bytes += len(data)
        body = self._payload
        super().data_received(data)
        error = self.exception()
        if error is not None and body is not None and body.exception() is None:
            body.set_exception(aiohttp.ClientPayloadError(str(error)), error)


class Exchange:
    """One request on one connection."""

    def __init__(self, fresh: bool = False) -> None:
        self.fresh = fresh
        """It must not go over a connection that was used before."""
        self._handler: CountingHandler | None = None
        self._received_bytes = 0
        self._begun_s = 0.0

    def begin(self, handler: CountingHandler) -> None:
        """Note the connection that the request goes over."""
        self._handler = handler
        self._received_bytes = handler.received_bytes
        self._begun_s = asyncio.get_running_loop().time()

    @property
    def was_stale(self) -> bool:
        """Whether a broken connection was used before, broke at once, and brought no answer."""
        handler = self._handler
        return (
            handler is not None
            and self._received_bytes > 0
            and handler.received_bytes == self._received_bytes
            and asyncio.get_running_loop().time() - self._begun_s < STALE_S
        )


exchange: ContextVar[Exchange | None] = ContextVar("exchange", default=None)
"""Of the request that the current task sends."""


class Connector(aiohttp.TCPConnector):
    """Tells the current `exchange` which connection it got."""

    def __init__(self) -> None:
        super().__init__(limit=0, keepalive_timeout=KEEP_ALIVE_S)
        counting: functools.partial[Any] = functools.partial(CountingHandler, loop=self._loop)
        self._factory = counting

    async def connect(self, *args: Any, **options: Any) -> Any:
        """Take a connection from the pool or open one.

        One that brought more than its answers is closed: the rest would be taken for the answer to
        the next request.
        """
        current = exchange.get()
        while True:
            connection = await super().connect(*args, **options)
            handler = connection.protocol
            assert isinstance(handler, CountingHandler)
            used = handler.received_bytes > 0
            must_be_fresh = current is not None and current.fresh
            if not (used and (handler.should_close or must_be_fresh)):
                if current is not None:
                    current.begin(handler)
                return connection
            connection.close()


def open_pool(api_key: str | None) -> aiohttp.ClientSession:
    """Open the connection pool of an engine.

    It has no limit: a request that waits for a connection would queue where nobody measures it.
    It asks for answers as they are, and takes no compressed ones: they cannot be timed, and may be
    a thousand times larger than they look.
    """
    allow_open_files()
    headers = {"Accept-Encoding": "identity"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    return aiohttp.ClientSession(
        connector=Connector(),
        timeout=aiohttp.ClientTimeout(total=None),
        headers=headers,
        auto_decompress=False,
        max_line_size=LARGEST_HEADER_BYTES,
        max_field_size=LARGEST_HEADER_BYTES,
    )

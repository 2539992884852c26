"""The small requests beside the answers: limited in time and size, and never redirected."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import aiohttp

from bellman.engines.openai.failures import message_of

DEADLINE_S = 10.0
"""A request that takes longer has failed."""
LARGEST_BODY_BYTES = 16 * 2**20


class NoReply(Exception):
    """No usable reply came; the text says why, in one line."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole response."""

    status: int
    body: bytes
    location: str | None = None
    """Where a redirection points."""

    def json(self) -> Any:
        """Return the body's JSON value, or None where it is none."""
        try:
            return json.loads(self.body.decode(errors="replace"))
        except (ValueError, RecursionError):
            return None


async def fetch(
    pool: aiohttp.ClientSession,
    method: str,
    url: str,
    content: Any = None,
    most_bytes: int = LARGEST_BODY_BYTES,
) -> Reply:
    """Send a request, with `content` as JSON, and return the response; raises `NoReply`."""
    try:
        async with (
            asyncio.timeout(DEADLINE_S),
            pool.request(method, url, json=content, allow_redirects=False) as response,
        ):
            body = await read_start(response, most_bytes + 1)
            location = response.headers.get("Location")
    except TimeoutError:
        raise NoReply(f"no answer within {DEADLINE_S:g} s") from None
    except Exception as error:  # whatever a foreign server's bytes set off
        raise NoReply(message_of(f"{type(error).__name__}: {error}".encode())) from None
    if len(body) > most_bytes:
        raise NoReply(f"an answer of more than {most_bytes / 2**20:g} MiB")
    return Reply(response.status, body, location)


async def read_start(response: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    """Return the first bytes of a body; nothing of one that is compressed."""
    if is_compressed(response):
        return b""
    start = bytearray()
    async for chunk in response.content.iter_any():
        start += chunk
        if len(start) >= most_bytes:
            break
    return bytes(start[:most_bytes])


def is_compressed(response: aiohttp.ClientResponse) -> bool:
    """Tell whether a body would have to be decompressed, which was not asked for."""
    return response.headers.get("Content-Encoding", "identity").strip().lower() != "identity"

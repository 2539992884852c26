"""Reads the body of an HTTP answer, up to a limit."""

import aiohttp


async def read_body(response: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
    """Return the whole body; raises ValueError when it is longer than the limit."""
    parts, size = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > limit_bytes:
            raise ValueError(f"the answer is longer than {limit_bytes} bytes")
    return b"".join(parts)

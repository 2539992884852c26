"""How a server's failure becomes a request's status and its reason in one line."""

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from bellman.engines.base import RequestFailed
from bellman.foreign_text import printable
from bellman.redact import conceal

LONGEST = 300
"""Characters of a server's message that a record keeps."""
REJECTED = (429, 503)
"""HTTP statuses of a server that is full: the request was refused, not broken."""
REDIRECTIONS = range(300, 400)
LONGEST_WAIT_S = 86400
"""A server that asks to wait longer says nothing that a client could use."""


def message_of(body: bytes) -> str:
    """Return the message of an error body: OpenAI's, vLLM's, FastAPI's, or the text itself."""
    return printable(_message(body.decode(errors="replace")), LONGEST)


def http_failure(
    status: int, body: bytes, location: str | None = None, retry_after: str | None = None
) -> RequestFailed:
    """Return the failure that a response with an error status is; the last two are headers."""
    message = message_of(body) or "no message"
    if location and status in REDIRECTIONS:
        place = printable(conceal(location), LONGEST)
        message = f"redirects to {place}: engine.base_url must lead there"
    return RequestFailed(
        "rejected" if status in REJECTED else "error",
        f"HTTP {status}: {message}",
        http_status=status,
        retry_after_s=None if retry_after is None else seconds_to_wait(retry_after),
    )


def seconds_to_wait(retry_after: str) -> float | None:
    """Return what the header Retry-After asks for: seconds or a date (RFC 9110, 10.2.3).

    None for anything else, and for more than a day.
    """
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        wait_s = float(text[:10])
    else:
        try:
            date = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
        aware = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
        wait_s = max(0.0, (aware - datetime.now(UTC)).total_seconds())
    return wait_s if wait_s <= LONGEST_WAIT_S else None


def _message(text: str) -> str:
    try:
        message = json.loads(text)
        while isinstance(message, dict):
            keys = [key for key in ("error", "message", "detail") if message.get(key)]
            if not keys:
                break
            message = message[keys[0]]
        return message if isinstance(message, str) else json.dumps(message)
    except (ValueError, RecursionError):
        return text

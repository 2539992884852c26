"""How a server's failure becomes a request's status and its reason in one line."""

import json

from bellman.engines.base import RequestFailed
from bellman.foreign_text import printable

LONGEST = 300
"""Characters of a server's message that a record keeps."""
REJECTED = (429, 503)
"""HTTP statuses of a server that is full: the request was refused, not broken."""
REDIRECTIONS = range(300, 400)


def message_of(body: bytes) -> str:
    """Return the message of an error body: OpenAI's, vLLM's, FastAPI's, or the text itself."""
    return printable(_message(body.decode(errors="replace")), LONGEST)


def http_failure(status: int, body: bytes, location: str | None = None) -> RequestFailed:
    """Return the failure that a response with an error status is."""
    message = message_of(body) or "no message"
    if location and status in REDIRECTIONS:
        message = f"redirects to {printable(location, LONGEST)}: engine.base_url must lead there"
    return RequestFailed("rejected" if status in REJECTED else "error", f"HTTP {status}: {message}")


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

"""How a server's failure becomes a request's status and its reason in one line."""

import json

from bellman.engines.base import RequestFailed

LONGEST = 300
"""Characters of a server's message that a record keeps."""
REJECTED = (429, 503)
"""HTTP statuses of a server that is full: the request was refused, not broken."""


def message_of(body: bytes) -> str:
    """Return the message of an error body: OpenAI's, vLLM's, FastAPI's, or the text itself."""
    try:
        message = json.loads(body)
    except ValueError:
        message = body.decode(errors="replace")
    while isinstance(message, dict):
        keys = [key for key in ("error", "message", "detail") if message.get(key)]
        message = message[keys[0]] if keys else json.dumps(message)
    text = " ".join(str(message).split())
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def http_failure(status: int, body: bytes) -> RequestFailed:
    """Return the failure that a response with an error status is."""
    reason = f"HTTP {status}: {message_of(body) or 'no message'}"
    return RequestFailed("rejected" if status in REJECTED else "error", reason)

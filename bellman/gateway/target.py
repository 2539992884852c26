"""What a request's target means: always a path at the one upstream, or nothing (RFC 9112, 3.2)."""

import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Receive, Scope, Send
from yarl import URL

from bellman.serving.refusal import RequestRefused

METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
ABSOLUTE_FORM = re.compile(rb"https?://([^/?#]*)(.*)", re.IGNORECASE)
PATH = re.compile(rb"/[!-\"$-\[\]-~]*")
"""Visible ASCII without `#`, which would begin a fragment, and `\\`, which some take for `/`."""
CONTROL_CHARACTER = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
LONGEST_HEAD_BYTES = 64 * 2**10
"""Longer targets and headers are refused (431)."""


def accept_absolute_form(app: ASGIApp) -> ASGIApp:
    """Return an app that is asked for `/path` where a target names it as `http://us:port/path`.

    Only a target that names this server (by its Host header, and its own port) is rewritten.
    """

    async def with_origin_form(scope: Scope, receive: Receive, send: Send) -> None:
        match = ABSOLUTE_FORM.fullmatch(scope.get("raw_path") or b"")
        if match and match[1] == _host(scope) and match[1].endswith(b":%d" % scope["server"][1]):
            raw_path = match[2] or b"/"
            path = unquote_to_bytes(raw_path).decode(errors="replace")
            scope = {**scope, "raw_path": raw_path, "path": path}
        await app(scope, receive, send)

    return with_origin_form


def upstream_url(upstream: URL, scope: Scope) -> URL:
    """Return where a request goes; raises `RequestRefused` for a target that is no path."""
    raw_path: bytes = scope["raw_path"]
    if scope["method"] == "CONNECT":
        message = "this gateway opens no tunnels"
        raise RequestRefused(405, "MethodNotAllowed", message, {"allow": METHODS})
    if ABSOLUTE_FORM.fullmatch(raw_path):
        message = "this gateway serves its own upstream only: ask for a path"
        raise RequestRefused(421, "MisdirectedRequest", message)
    segments = re.split(rb"[/\\]", unquote_to_bytes(raw_path))
    if PATH.fullmatch(raw_path) is None or b"." in segments or b".." in segments:
        message = "the target must be a path, without fragment, backslash, . or .."
        raise RequestRefused(400, "BadRequestError", message)
    # By its parts: concatenated, `@other` would turn the upstream's name into a password.
    return URL.build(
        scheme=upstream.scheme,
        authority=upstream.raw_authority,
        path=upstream.raw_path.rstrip("/") + raw_path.decode("ascii"),
        query_string=scope["query_string"].decode("ascii"),
        encoded=True,
    )


def check_head(scope: Scope) -> None:
    """Refuse a head that is too long, or leaves open where the body ends (RFC 9112, 6.3)."""
    headers = scope["headers"]
    size = len(scope["raw_path"]) + len(scope["query_string"])
    size += sum(len(name) + len(value) + len(b": \r\n") for name, value in headers)
    if size > LONGEST_HEAD_BYTES:
        message = f"the target and headers are longer than {LONGEST_HEAD_BYTES} bytes"
        raise RequestRefused(431, "HeadersTooLarge", message)
    if {b"content-length", b"transfer-encoding"} <= {name for name, _ in headers}:
        message = "both Content-Length and Transfer-Encoding: one of them is wrong"
        raise RequestRefused(400, "BadRequestError", message)
    if has_control_character(headers):
        message = "a header has control characters"
        raise RequestRefused(400, "BadRequestError", message)


def has_control_character(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a header's value has a character that none may have (RFC 9110, 5.5)."""
    return any(CONTROL_CHARACTER.search(value) for _, value in headers)


def _host(scope: Scope) -> bytes | None:
    return next((value for name, value in scope["headers"] if name == b"host"), None)

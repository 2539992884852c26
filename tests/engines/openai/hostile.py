"""A server that answers each prompt with another kind of broken stream, named by the prompt."""

import asyncio
import gzip
import json
import random
from collections.abc import Callable
from typing import Any

Random = random.Random
Answer = Callable[[Random], list[bytes]]
"""Returns the pieces that the server writes, one after the other."""

GOOD = "good"
END = b"data: [DONE]\n\n"


def event(value: Any) -> bytes:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return b"data: " + text + b"\n\n"


def chunk(content: Any = None, finish_reason: Any = None, **delta: Any) -> bytes:
    delta = delta if content is None else {"content": content, **delta}
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})


def usage(**counts: Any) -> bytes:
    return event({"choices": [], "usage": counts})


def words(r: Random) -> list[bytes]:
    return [chunk(f" w{r.randrange(100)}") for _ in range(r.randrange(1, 5))]


STOP = chunk(finish_reason="stop") + END


def response(*body: bytes, kind: str = "text/event-stream", status: str = "200 OK") -> list[bytes]:
    """Return a whole response, with its length."""
    length = sum(map(len, body))
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    return [head.encode(), *body]


def open_ended(*body: bytes) -> list[bytes]:
    """Return a response without a length, which ends with its connection."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    return [head, *body]


def chunked(*body: bytes) -> list[bytes]:
    """Return the head of a chunked response, and pieces as they are."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    return [head + b"\r\n", *body]


def headed(header: bytes) -> list[bytes]:
    good = [*words(Random(0)), STOP]
    length = sum(map(len, good))
    return [
        b"HTTP/1.1 200 OK\r\n" + header + b"\r\nContent-Type: text/event-stream\r\n"
        b"Content-Length: %d\r\n\r\n" % length,
        *good,
    ]


def cut(r: Random) -> list[bytes]:
    whole = b"".join([*words(r), STOP])
    return open_ended(whole[: r.randrange(1, len(whole) - len(END))])


def noise(r: Random) -> list[bytes]:
    return [r.randbytes(r.randrange(1, 200)) + b"\r\n\r\n"]


def noise_in_stream(r: Random) -> list[bytes]:
    return response(*words(r), b"data: " + r.randbytes(40).replace(b"\n", b"") + b"\n\n", STOP)


def flipped(r: Random) -> list[bytes]:
    """Break the JSON of one event."""
    events = words(r)
    index = r.randrange(len(events))
    events[index] = events[index].replace(b"{", b"", 1)
    return response(*events, STOP)


DEEP = b'{"choices":' * 5000 + b"1" + b"}" * 5000
PARTY = "\N{PARTY POPPER}".encode()

OK: dict[str, Answer] = {
    GOOD: lambda r: response(*words(r), STOP),
    "a lone surrogate in the content": lambda r: response(*words(r), chunk("\ud800"), STOP),
    "a lone surrogate as finish reason": lambda r: response(
        *words(r), chunk(finish_reason="\udfff"), END
    ),
    "a count that is true": lambda r: response(
        *words(r), STOP[: -len(END)], usage(completion_tokens=True), END
    ),
    "a negative count": lambda r: response(
        *words(r), STOP[: -len(END)], usage(completion_tokens=-5), END
    ),
    "a count with a fraction": lambda r: response(
        *words(r), STOP[: -len(END)], usage(completion_tokens=2.5), END
    ),
    "a count beyond 32 bits": lambda r: response(
        *words(r),
        STOP[: -len(END)],
        usage(completion_tokens=3_000_000_000, prompt_tokens=2**70),
        END,
    ),
    "a usage of another shape": lambda r: response(*words(r), event({"usage": [1]}), STOP),
    "usage in the middle": lambda r: response(
        *words(r), usage(completion_tokens=1), *words(r), STOP
    ),
    "numbers that are none": lambda r: response(
        *words(r), event(b'{"choices": [], "x": NaN, "y": Infinity}'), STOP
    ),
    "[DONE] twice": lambda r: response(*words(r), STOP, END),
    "an error after [DONE]": lambda r: response(
        *words(r), STOP, event({"error": "late"}), chunk("x")
    ),
    "CRLF": lambda r: response(b"".join([*words(r), STOP]).replace(b"\n", b"\r\n")),
    "CR": lambda r: response(b"".join([*words(r), STOP]).replace(b"\n", b"\r")),
    "a byte order mark": lambda r: response(b"\xef\xbb\xbf", *words(r), STOP),
    "comments between": lambda r: response(b": wait\n\n" * 3, *words(r), b":\n\n", STOP),
    "data on several lines": lambda r: response(
        *words(r), b'data: {"choices":\ndata: [{"delta": {"content": "x"}}]}\n\n', STOP
    ),
    "other fields": lambda r: response(b"event: x\nid: 7\nretry: 1\n", *words(r), STOP),
    "invalid UTF-8 in the content": lambda r: response(
        *words(r), b'data: {"choices":[{"delta":{"content":"a', PARTY[:2], b'b"}}]}\n\n', STOP
    ),
    "a character in two writes": lambda r: response(
        *words(r),
        b'data: {"choices":[{"delta":{"content":"',
        PARTY[:2],
        PARTY[2:] + b'"}}]}\n\n',
        STOP,
    ),
    "no blank line at the end": lambda r: response(*words(r), STOP.rstrip(b"\n")),
    "choices of another shape": lambda r: response(
        *words(r), event({"choices": {"0": 1}}), event({"choices": [None, 7, []]}), STOP
    ),
    "a delta of another shape": lambda r: response(
        *words(r), event({"choices": [{"delta": "x"}, {"delta": {"content": 7}}]}), STOP
    ),
    "a header of 12 kB": lambda r: headed(b"X-Padding: " + b"a" * 12_000),
    "a header that is no text": lambda r: headed(b"X-Bellman-Congestion: \xff\xfe"),
    "a head of many lines": lambda r: headed(b"\r\n".join(b"X-%d: 1" % n for n in range(100))),
    "control characters in the content": lambda r: response(
        *words(r), chunk("\x00\x1b[2J[/x]"), STOP
    ),
    # In one write: had the client sent its next request already, nobody could know whose it is.
    "another response right after": lambda r: [
        b"".join([*response(*words(r), STOP), *response(chunk("stale"), STOP)])
    ],
    "100 and 103 before it": lambda r: [
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n",
        *response(*words(r), STOP),
    ],
    "the connection breaks after [DONE]": lambda r: chunked(
        *(b"%x\r\n%s\r\n" % (len(part), part) for part in (*words(r), STOP)), b"ff\r\nbroken"
    ),
}
ERRORS: dict[str, Answer] = {
    "a lone surrogate in the message": lambda r: response(
        json.dumps({"error": {"message": "\ud800[/x]\x1b[31m"}}).encode(), status="500 No"
    ),
    "an error in the stream": lambda r: response(
        *words(r), event({"error": {"message": ["\udc00"]}})
    ),
    "JSON nested 5,000 deep": lambda r: response(*words(r), event(DEEP), STOP),
    "a list nested 5,000 deep": lambda r: response(event(b"[" * 5000), STOP),
    "an error body nested 5,000 deep": lambda r: response(DEEP, status="500 No"),
    "a number of 5,000 digits": lambda r: response(event(b'{"x": %s}' % (b"9" * 5000)), STOP),
    "cut anywhere": cut,
    "no bytes at all": lambda r: [],
    "noise instead of HTTP": noise,
    "noise in the stream": noise_in_stream,
    "broken JSON": flipped,
    "several answers": lambda r: response(
        *words(r), event({"choices": [{"index": 1, "delta": {"content": "x"}}]}), STOP
    ),
    "no content": lambda r: response(STOP),
    "thinking alone": lambda r: response(chunk("<think>hm"), STOP),
    "a refusal": lambda r: response(chunk(refusal="No\ud800."), STOP),
    "an aborted answer": lambda r: response(*words(r), chunk(finish_reason="abort"), END),
    "a finish reason that is no text": lambda r: response(*words(r), chunk(finish_reason=7), END),
    "not a stream": lambda r: response(b'{"choices": []}', kind="application/json"),
    "a page": lambda r: response(b"<html>[bold]", kind="text/html\ttext"),
    "204": lambda r: [b"HTTP/1.1 204 No Content\r\n\r\n"],
    "304": lambda r: [b"HTTP/1.1 304 Not Modified\r\n\r\n"],
    "a redirection": lambda r: response(status="307 There\r\nLocation: http://127.0.0.1:9/v1"),
    "a redirection to nowhere": lambda r: response(status="302 There\r\nLocation: http://[/x"),
    "a gzip bomb": lambda r: response(
        gzip.compress(b"\0" * 10_000_000, 1), kind="text/event-stream\r\nContent-Encoding: gzip"
    ),
    "a bomb as an error": lambda r: response(
        gzip.compress(b"\0" * 10_000_000, 1),
        status="500 No\r\nContent-Encoding: gzip",
    ),
    "a chunk size that is none": lambda r: chunked(b"zz\r\nabc\r\n"),
    "a chunk longer than its size": lambda r: chunked(b"2\r\nabcdef\r\n0\r\n\r\n"),
    "a header of 100 kB": lambda r: headed(b"X-Padding: " + b"a" * 100_000),
    "a length that is none": lambda r: [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: -1\r\n\r\n"
    ],
    "a status that is none": lambda r: [b"HTTP/1.1 9999 What\r\n\r\n"],
    "a line without an end": lambda r: open_ended(*words(r), b"data: " + b"x" * 100_000),
}
REJECTED: dict[str, Answer] = {
    "429 with noise": lambda r: response(r.randbytes(100), status="429 Full"),
    "503 without a body": lambda r: [b"HTTP/1.1 503 Down\r\nContent-Length: 7\r\n\r\n"],
}
EITHER: dict[str, Answer] = {
    "a body longer than its length": lambda r: [
        b"".join([*response(*words(r), STOP), b"data: more\n\n"])
    ],
}
"""Whether the answer was read to its end before the rest was looked at is chance."""
KINDS = {**OK, **ERRORS, **REJECTED, **EITHER}
KEPT_OPEN = (GOOD, "another response right after", "a body longer than its length")
"""The connection is offered for another request, though something may be left in it."""


class HostileServer:
    """Answers by the kind that the prompt begins with; other requests get 404."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.answered = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; tell whether the connection may go on."""
        head = await reader.readuntil(b"\r\n\r\n")
        fields = dict(
            line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line
        )
        body = await reader.readexactly(int(fields.get(b"content-length", 0)))
        if not head.startswith(b"POST /v1/chat/completions"):
            found = b"/v1/models" in head
            named = json.dumps({"data": [{"id": "[/x]\ud800"}, None, {"id": 7}]}).encode()
            status = "200 OK" if found else "404 Not Found"
            writer.write(b"".join(response(named, kind="application/json", status=status)))
            return True
        kind = json.loads(body)["messages"][0]["content"].split("\n")[0]
        self.answered += 1
        for piece in KINDS[kind](self._random):
            writer.write(piece)
            await writer.drain()
            if self._random.random() < 0.2:
                await asyncio.sleep(0)
        return kind in KEPT_OPEN

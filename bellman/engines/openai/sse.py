"""Server-sent events, parsed from bytes as they arrive (WHATWG HTML, section 9.2)."""

from bellman.engines.base import RequestFailed

LARGEST_EVENT_BYTES = 8 * 2**20
"""Of one event, or of one line: no chunk of an answer comes near it."""
BOM = b"\xef\xbb\xbf"


class EventParser:
    """Turns chunks of an event stream into the data of its events.

    Works on bytes, so a line of any length and a UTF-8 character split between two chunks come out
    whole. Lines may end in LF, CR or CRLF; comments and fields other than `data` are skipped.
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._line_bytes = 0
        self._data_bytes = 0
        self._at_start = True
        self._ended_in_cr = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes; return the data of every event they complete.

        Raises `RequestFailed` for an event of more than `LARGEST_EVENT_BYTES`.
        """
        if not chunk:
            return []
        if self._ended_in_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._ended_in_cr = chunk.endswith(b"\r")
        self._line_bytes += len(chunk)
        if b"\n" not in chunk and b"\r" not in chunk:
            self._line.append(chunk)  # joined once, when the line ends: long lines stay linear
            self._check_size()
            return []
        lines = b"".join([*self._line, chunk]).splitlines(keepends=True)
        self._line = [] if lines[-1].endswith((b"\n", b"\r")) else [lines.pop()]
        self._line_bytes = sum(map(len, self._line))
        events = []
        for line in lines:
            event = self._take_line(line.rstrip(b"\r\n"))
            if event is not None:
                events.append(event)
        self._check_size()
        return events

    def finish(self) -> list[bytes]:
        """End the stream; return the last event even if its final newline is missing."""
        self._take_line(b"".join(self._line))
        event = self._take_line(b"")
        self._line = []
        return [] if event is None else [event]

    def _check_size(self) -> None:
        if self._line_bytes + self._data_bytes > LARGEST_EVENT_BYTES:
            limit = LARGEST_EVENT_BYTES // 2**20
            raise RequestFailed("error", f"an event of more than {limit} MiB in the stream")

    def _take_line(self, line: bytes) -> bytes | None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(BOM)
        if not line:
            event = b"\n".join(self._data) if self._data else None
            self._data = []
            self._data_bytes = 0
            return event
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._data_bytes += len(line)
        return None

"""Server-sent events, parsed from bytes as they arrive (WHATWG HTML, section 9.2)."""


class EventParser:
    """Turns chunks of an event stream into the data of its events.

    Works on bytes, so a line of any length and a UTF-8 character split between two chunks come out
    whole. Lines may end in LF, CR or CRLF; comments and fields other than `data` are skipped.
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._ended_in_cr = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes; return the data of every event they complete."""
        if not chunk:
            return []
        if self._ended_in_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._ended_in_cr = chunk.endswith(b"\r")
        if b"\n" not in chunk and b"\r" not in chunk:
            self._line.append(chunk)  # joined once, when the line ends: long lines stay linear
            return []
        lines = b"".join([*self._line, chunk]).splitlines(keepends=True)
        self._line = [] if lines[-1].endswith((b"\n", b"\r")) else [lines.pop()]
        events = []
        for line in lines:
            event = self._take_line(line.rstrip(b"\r\n"))
            if event is not None:
                events.append(event)
        return events

    def finish(self) -> list[bytes]:
        """End the stream; return the last event even if its final newline is missing."""
        self._take_line(b"".join(self._line))
        event = self._take_line(b"")
        self._line = []
        return [] if event is None else [event]

    def _take_line(self, line: bytes) -> bytes | None:
        if not line:
            event = b"\n".join(self._data) if self._data else None
            self._data = []
            return event
        name, _, value = line.removeprefix(b"\xef\xbb\xbf").partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        return None

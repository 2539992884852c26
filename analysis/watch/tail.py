"""Reads what is appended to a JSON Lines file, a bounded piece at a time."""

import os
from pathlib import Path

READ_BYTES = 2**22
"""Of one file at one look, so that a look stays short however large the file is."""


class Tail:
    """The lines of a file that may not be there yet, may grow, and may be replaced."""

    def __init__(self, path: Path, *, last_bytes: int | None = None) -> None:
        """Follow `path`; of what it holds at first only the `last_bytes`, where they are given."""
        self._path = path
        self._last_bytes = last_bytes
        self._begin()

    def _begin(self) -> None:
        self._file: tuple[int, int] | None = None
        self._offset = 0
        self._part = b""
        self._in_a_line = False
        self.behind_bytes = 0
        """What the file holds beyond what was read."""

    def more(self) -> list[bytes] | None:
        """Return the whole lines that came since; a last line without its end waits.

        None says that it is another file now: what was read before counts no more.
        """
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                identity = (status.st_dev, status.st_ino)
                if self._file is None:
                    self._file = identity
                    self._skip(status.st_size)
                elif self._file != identity or status.st_size < self._offset:
                    self._begin()
                    return None
                file.seek(self._offset)
                data = file.read(READ_BYTES)
        except OSError:
            known = self._file is not None
            self._begin()
            return None if known else []
        self._offset += len(data)
        self.behind_bytes = max(0, status.st_size - self._offset)
        *lines, self._part = (self._part + data).split(b"\n")
        if len(self._part) > READ_BYTES:  # no record: its end is dropped as well
            self._part, self._in_a_line = b"", True
        elif self._in_a_line and lines:
            del lines[0]
            self._in_a_line = False
        return lines

    def _skip(self, size: int) -> None:
        """Begin near the end of a file that is long already, within one of its lines."""
        if self._last_bytes is not None and size > self._last_bytes:
            self._offset = size - self._last_bytes
            self._in_a_line = True

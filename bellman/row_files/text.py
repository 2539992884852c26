"""Lines of text files as they come: compressed or not, UTF-8 or UTF-16, any line end."""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

from bellman.errors import RunError

GZIP_MAGIC = b"\x1f\x8b"
UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
SHOWN_CHARACTERS = 60


def starts_with(path: Path, magic: bytes) -> bool:
    """Whether a file's first bytes are these, whatever its name says."""
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line with its end) of a text file.

    Raises `RunError` with file and line where it is no text, or a broken gzip file.
    """
    number = 0
    opener = gzip.open if starts_with(path, GZIP_MAGIC) else open
    try:
        with opener(path, "rb") as file:
            mark = file.read(2)
            file.seek(0)
            if mark in UTF_16_MARKS:
                for number, line in enumerate(io.TextIOWrapper(file, "utf-16", newline="\n"), 1):
                    yield number, line
                return
            for number, raw in enumerate(file, 1):
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        where = f"{path}:{number or 1}"
        kind = error.encoding.upper()
        raise RunError(f"{where}: not {kind} at byte {error.start}; convert it to UTF-8") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RunError(f"{path}: a broken gzip file after line {number}: {error}") from None


def shown(value: object) -> str:
    """Return a value for a message: in one line, not long, and printable."""
    text = value if isinstance(value, str) else repr(value)
    cut = " ".join(text[: 4 * SHOWN_CHARACTERS].split())
    cut = "".join(c if c.isprintable() else repr(c)[1:-1] for c in cut)
    return cut if len(cut) <= SHOWN_CHARACTERS else f"{cut[:SHOWN_CHARACTERS]}..."

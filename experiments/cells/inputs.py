"""Digests of the files that a specification names by their paths."""

import hashlib
import stat
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

WHOLE_BYTES = 64 * 2**20
"""A larger file (a model's weights) is known by its size and its time of change."""


def input_digests(value: Any) -> dict[str, str]:
    """Return path -> SHA-256 of every file or folder that is there and named in `value`.

    Any string that is a path counts, so that no variant can forget to say which of its entries are
    files; of folders only those with a separator, lest a plain word name one by chance.
    """
    return {
        path: digest
        for path in sorted(set(_strings(value)))
        if (digest := _digest(path)) is not None
    }


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for entry in value.values():
            yield from _strings(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from _strings(entry)


def _digest(text: str) -> str | None:
    if not text or "\0" in text:
        return None
    try:
        found = Path(text).stat()
    except OSError:
        return None
    if stat.S_ISDIR(found.st_mode) and "/" not in text:
        return None
    return _digest_of(text, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=4096)
def _digest_of(text: str, _changed_ns: int, _size: int) -> str:
    path = Path(text)
    digest = hashlib.sha256()
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    for file in files:
        digest.update(file.relative_to(path).as_posix().encode() + b"\0")
        found = file.stat()
        if found.st_size > WHOLE_BYTES:
            digest.update(f"{found.st_size} {found.st_mtime_ns}".encode())
        elif file.is_file():
            digest.update(file.read_bytes())
    return digest.hexdigest()

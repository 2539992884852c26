"""Lines as they are appended, whole, once, and a bounded piece at a time."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.watch import tail
from analysis.watch.tail import Tail


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


def append(file: Path, data: bytes) -> None:
    with file.open("ab") as opened:
        opened.write(data)


def test_a_line_comes_when_it_is_whole(file: Path) -> None:
    tailed = Tail(file)
    assert tailed.more() == []  # there is no such file yet
    append(file, b'{"a": 1}\n{"a"')
    assert tailed.more() == [b'{"a": 1}']
    assert tailed.more() == []
    append(file, b": 2}\n")
    assert tailed.more() == [b'{"a": 2}']


@settings(max_examples=30)
@given(st.lists(st.binary(max_size=6)))
def test_however_it_is_appended_every_whole_line_comes_once(pieces: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "records.jsonl"
        tailed, found = Tail(file), []
        for piece in pieces:
            append(file, piece)
            found += tailed.more() or []
        assert found == b"".join(pieces).split(b"\n")[:-1]


@pytest.mark.parametrize("change", ["replaced", "shortened", "removed"])
def test_another_file_in_its_place_begins_anew(file: Path, change: str) -> None:
    tailed = Tail(file)
    append(file, b"one\ntwo\n")
    assert tailed.more() == [b"one", b"two"]
    if change == "replaced":
        file.rename(file.with_name("aside"))
        file.write_bytes(b"other one\nother two\nother three\n")
    elif change == "shortened":
        file.write_bytes(b"new\n")
    else:
        file.unlink()
    assert tailed.more() is None
    if change == "removed":
        file.write_bytes(b"new\n")
    assert tailed.more() == file.read_bytes().splitlines()


def test_a_large_file_is_read_in_bounded_pieces(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "READ_BYTES", 1000)
    lines = [b"%07d" % number for number in range(1000)]  # 8 bytes each
    file.write_bytes(b"".join(line + b"\n" for line in lines))
    tailed, found, looks = Tail(file), [], 0
    while True:
        more = tailed.more()
        assert more is not None
        found += more
        looks += 1
        assert tailed.behind_bytes == 8000 - min(8000, looks * 1000)
        if not tailed.behind_bytes:
            break
    assert (found, looks) == (lines, 8)


def test_of_a_long_file_only_the_end_is_read_where_that_is_enough(file: Path) -> None:
    file.write_bytes(b"first\nsecond\nthird\nfourth\n")
    assert Tail(file, last_bytes=9).more() == [b"fourth"]
    assert Tail(file, last_bytes=100).more() == [b"first", b"second", b"third", b"fourth"]


def test_an_endless_line_is_dropped_whole(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "READ_BYTES", 10)
    file.write_bytes(b"x" * 35 + b"\ngood\n")
    tailed, found = Tail(file), []
    for _ in range(5):
        found += tailed.more() or []
    assert found == [b"good"]

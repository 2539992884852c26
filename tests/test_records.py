"""The record writer and its readers."""

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import fields

import pyarrow as pa
import pytest

from bellman.records import (
    REQUESTS,
    TEXTS,
    TIMELINE,
    JsonLinesWriter,
    RequestRecord,
    TimelineRow,
    read_json_lines,
    write_json,
)


def record(request_id=0, **changes):
    values = {
        "repeat": 0,
        "arm": "none",
        "request_id": request_id,
        "document_id": "P16-1001",
        "phase": "calm",
        "intended_s": 0.1 + request_id,
        "source": "simulated",
        "status": "ok",
    }
    return RequestRecord(**(values | changes))


def test_a_records_columns_are_its_fields():
    assert REQUESTS.names == [field.name for field in fields(RequestRecord)]
    assert TIMELINE.names == [field.name for field in fields(TimelineRow)]
    kinds = {"request_id": "int64", "arm": "string", "status": "string", "intended_s": "double"}
    kinds |= {"reason": "string", "level": "double", "word_budget": "int64"}
    assert {name: str(REQUESTS.field(name).type) for name in kinds} == kinds
    assert REQUESTS.field("chunk_gaps_s").type == pa.list_(pa.float64())
    assert all(field.nullable for field in (*REQUESTS, *TIMELINE, *TEXTS))


def test_records_come_back_exactly(tmp_path):
    with JsonLinesWriter(tmp_path / "requests.jsonl") as writer:
        writer.write(record(0, level=1 / 3, reason="Ünïcode\nline"))
        writer.write(record(1))
    rows = read_json_lines(tmp_path / "requests.jsonl", REQUESTS).to_pylist()
    assert rows[0]["level"] == 1 / 3
    assert rows[0]["reason"] == "Ünïcode\nline"
    assert rows[1]["level"] is None


def test_an_empty_file_is_an_empty_table(tmp_path):
    JsonLinesWriter(tmp_path / "requests.jsonl").close()
    assert read_json_lines(tmp_path / "requests.jsonl", REQUESTS).num_rows == 0


def test_a_killed_writer_loses_at_most_the_line_it_was_writing(tmp_path):
    path = tmp_path / "requests.jsonl"
    code = """
        import sys
        from pathlib import Path
        from bellman.records import JsonLinesWriter, RequestRecord
        writer = JsonLinesWriter(Path(sys.argv[1]))
        for number in range(1_000_000):
            writer.write(RequestRecord(0, "none", number, "d", "calm", 0.0, "simulated", "ok"))
            if number == 500:
                print("ready", flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(path)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with path.open("ab") as file:
        file.write(b'{"repeat": 0, "arm": "no')  # a line cut in the middle
    ids = read_json_lines(path, REQUESTS)["request_id"].to_pylist()
    assert len(ids) > 500
    assert ids == list(range(len(ids)))


def test_not_measured_is_null_and_nan_is_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json({"energy_j": float("nan")}, tmp_path / "energy.json")
    assert not (tmp_path / "energy.json").exists()


def test_a_file_that_is_removed_while_it_is_written_is_noticed(tmp_path):
    with JsonLinesWriter(tmp_path / "requests.jsonl") as writer:
        writer.write(record())
        (tmp_path / "requests.jsonl").unlink()
        with pytest.raises(FileNotFoundError, match=r"Removed during the run: '.*requests\.jsonl"):
            writer.write(record())

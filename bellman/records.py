"""The record schemas of a run folder, and the writer that loses nothing when it is killed."""

import errno
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import pyarrow as pa
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from bellman.columns import columns_of
from bellman.json_line import json_line
from bellman.redact import conceal_values, redact
from bellman.source import Source

Status = Literal["ok", "rejected", "error", "timeout", "unfinished"]
STATUSES: tuple[Status, ...] = ("ok", "rejected", "error", "timeout", "unfinished")
WARMUP = "warmup"
"""The phase that is never counted."""
DRAIN = "drain"
"""The time after the schedule's end in which outstanding requests finish; nothing is sent."""


@dataclass(slots=True)
class RequestRecord:
    """One intended request of one arm. Times are seconds since the episode's start."""

    repeat: int
    arm: str
    request_id: int
    document_id: str
    phase: str
    """Phase of the schedule that the intended send time falls in."""
    intended_s: float
    source: Source
    status: Status
    reason: str | None = None
    """Why it is not `ok`."""
    sent_s: float | None = None
    first_token_s: float | None = None
    """Of anything that the model wrote, reasoning included."""
    first_content_token_s: float | None = None
    """Of the answer's text, after any reasoning."""
    last_token_s: float | None = None
    """Of anything that the model wrote."""
    ended_s: float | None = None
    level: float | None = None
    """Congestion level the application acted on; None before its first signal."""
    level_age_s: float | None = None
    scale: float | None = None
    """Word budget / default."""
    word_budget: int | None = None
    """Words the application wants."""
    asked_words: int | None = None
    """Words the prompt asks for (differs from the budget only with calibrated adaptation)."""
    max_tokens: int | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    """Those of the output tokens that were reasoning, where the server reports them."""
    output_words: int | None = None
    finish_reason: str | None = None
    text_id: str | None = None
    """Key into texts.parquet."""
    preemptions: int | None = None
    chunk_gaps_s: list[float] | None = None
    """Waits between two pieces of the stream, reasoning included; None where there is none."""
    retries: int | None = None
    """How often it was sent again because its connection was stale; None without connections."""
    attempts: int | None = None
    """How often it was sent, each with a record of its own; None where it can be sent but once."""
    replica: str | None = None
    """Which of several engines it was sent to last; None where there is one."""


@dataclass(slots=True)
class AttemptRecord:
    """One time that a request was sent, where its client or a route may send it again.

    A request without such records was sent once: its own record is that of its attempt.
    """

    repeat: int
    arm: str
    request_id: int
    attempt: int
    """1, 2, 3... of the request."""
    sent_s: float
    source: Source
    status: Status
    """As a request's; an attempt that is out when its request ends has the request's own."""
    ended_s: float | None = None
    http_status: int | None = None
    """Of a refusal or an error; None for an answer, and where no HTTP answer came."""
    reason: str | None = None
    retry_after_s: float | None = None
    """How long the server asked to wait."""
    replica: str | None = None
    """Which of several engines it was sent to."""


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One sample. Times are seconds since the episode's start; unknown is None."""

    repeat: int
    arm: str
    time_s: float
    phase: str
    source: Source
    level: float | None
    waiting: int | None
    running: int | None
    kv_usage: float | None
    word_budget: int | None
    """The budget that the application would ask for now."""
    energy_j: float | None
    """Joules since the meter's start."""
    power_w: float | None
    """Mean since the row before."""
    prompt_tokens_total: int | None
    generated_tokens_total: int | None
    preemptions_total: int | None
    replica: str | None = None
    """Which of several engines it is a sample of; None: of all together."""


@dataclass(frozen=True, slots=True)
class TextRecord:
    """A distinct text that was written to a document."""

    text_id: str
    document_id: str
    text: str


REQUESTS = columns_of(RequestRecord)
ATTEMPTS = columns_of(AttemptRecord)
TIMELINE = columns_of(TimelineRow)
TEXTS = columns_of(TextRecord)

BLOCK_BYTES = 2**20
"""Read at a time; a line must fit, so a longer one makes longer blocks."""


GATHERED_BYTES = 2**18
"""Written at once where lines are gathered."""


class JsonLinesWriter:
    """Appends one JSON object a line, each with one unbuffered write.

    What was written survives SIGKILL of this process at any instant; at most the last line is cut.
    Where the lines come out the same again, `gathered` ones are written many at once, and at the
    latest by `close`.
    """

    def __init__(self, path: Path, *, gathered: bool = False) -> None:
        self.path = path
        self.lines = 0
        self._gathered: bytearray | None = bytearray() if gathered else None
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, record: Any) -> None:
        """Append a record, a dataclass; raises OSError when the disk is full, or the file gone."""
        line = json_line(record)
        self.lines += 1
        if self._gathered is None:
            self._append(line)
            return
        self._gathered += line
        if len(self._gathered) >= GATHERED_BYTES:
            self._write_gathered()

    def _write_gathered(self) -> None:
        if self._gathered:
            lines, self._gathered = bytes(self._gathered), bytearray()
            self._append(lines)

    def _append(self, lines: bytes) -> None:
        shown = conceal_values(lines.decode()).encode()
        written = os.write(self._descriptor, shown)
        while written < len(shown):
            written += os.write(self._descriptor, shown[written:])
        if os.fstat(self._descriptor).st_nlink == 0:  # else all that follows is written to nowhere
            raise FileNotFoundError(errno.ENOENT, "Removed during the run", str(self.path))

    def close(self) -> None:
        """Close the file; closing twice does nothing. Raises OSError as `write` does."""
        if self._descriptor >= 0:
            try:
                self._write_gathered()
            finally:
                os.close(self._descriptor)
                self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def read_json_lines(path: Path, schema: pa.Schema) -> pa.Table:
    """Read a JSON Lines file into a table of `schema`; a last line cut by a kill is left out."""
    data = path.read_bytes()
    data = data[: data.rfind(b"\n") + 1]
    if not data:
        return schema.empty_table()
    options = pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    longest_bytes = max(map(len, data.split(b"\n")))
    blocks = pa_json.ReadOptions(block_size=max(BLOCK_BYTES, 2 * longest_bytes))
    table = pa_json.read_json(pa.BufferReader(data), blocks, options)
    return table.select(schema.names)


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write a parquet file atomically, so that a file that exists is whole."""
    partial = _partial(path)
    pq.write_table(table, partial)
    partial.replace(path)


def write_json(value: object, path: Path) -> None:
    """Write a JSON file atomically, without secrets; NaN is refused (not measured is null)."""
    text = json.dumps(redact(value), indent=2, allow_nan=False, ensure_ascii=False)
    write_text(f"{text}\n", path)


def write_text(text: str, path: Path) -> None:
    """Write a text file atomically, in UTF-8 whatever the user's locale is."""
    write_bytes(text.encode(errors="replace"), path)


def write_bytes(content: bytes, path: Path) -> None:
    """Write a file atomically."""
    partial = _partial(path)
    partial.write_bytes(content)
    partial.replace(path)


def _partial(path: Path) -> Path:
    """Return the name that a file has until it is whole; another one in every process."""
    return path.with_name(f"{path.name}.{os.getpid()}.partial")

"""The schedule: every intended request of a repeat, drawn before anything runs."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from operator import attrgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bellman.columns import columns_of

CALM = "calm"
CONGESTED = "congested"
RECOVERY = "recovery"

_METADATA = b"bellman.schedule"
_TIMES, _DOCUMENTS = 0, 1


@dataclass(frozen=True, slots=True)
class Phase:
    """A named part of the schedule, [start_s, end_s), with its mean offered rate."""

    name: str
    start_s: float
    end_s: float
    rate_rps: float

    @property
    def length_s(self) -> float:
        """Seconds from start to end."""
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class ScheduledRequest:
    """One intended request; `intended_s` counts from the episode's start, in whole microseconds."""

    request_id: int
    """Its place in the schedule, from 0."""
    intended_s: float
    document_id: str
    phase: str
    prompt_tokens: int | None = None
    """Prompt length where the schedule comes from a trace."""
    output_tokens: int | None = None
    """Output length where the schedule comes from a trace."""
    hash_ids: tuple[int, ...] | None = None
    """A trace's names of the prompt's blocks. Only the simulated engine looks at them."""
    priority: int | None = None
    """A trace's priority, the lowest goes first. Only the simulated engine looks at it."""


NAMES = tuple(field.name for field in fields(ScheduledRequest))
_values_of = attrgetter(*NAMES)
SCHEDULE = pa.schema([("repeat", pa.int64()), *columns_of(ScheduledRequest)])


@dataclass(frozen=True)
class Schedule:
    """Intended requests in order of time, the phases that cover them, and the end of both."""

    requests: tuple[ScheduledRequest, ...]
    phases: tuple[Phase, ...]
    end_s: float
    left_out: dict[str, int] = field(default_factory=dict)
    """Rows of a trace that are no requests, counted by reason."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the exact values of requests and phases; arms of a repeat share it."""
        digest = hashlib.sha256()
        for request in self.requests:
            *always, hash_ids, priority = _values_of(request)
            digest.update(repr(tuple(always)).encode())
            if (hash_ids, priority) != (None, None):
                digest.update(repr((hash_ids, priority)).encode())
        digest.update(repr((self.phases, self.end_s)).encode())
        return digest.hexdigest()

    def to_table(self, repeat: int) -> pa.Table:
        """Return the table of `SCHEDULE`; all that is no request travels in its metadata."""
        columns = (
            zip(*map(_values_of, self.requests), strict=True)
            if self.requests
            else [()] * len(NAMES)
        )
        arrays = [pa.array([repeat] * len(self.requests), pa.int64())]
        arrays += [
            pa.array(column, SCHEDULE.field(name).type)
            for name, column in zip(NAMES, columns, strict=True)
        ]
        shape = {
            "phases": [asdict(phase) for phase in self.phases],
            "end_s": self.end_s,
            "left_out": self.left_out,
        }
        metadata = {_METADATA: json.dumps(shape).encode()}
        table = pa.Table.from_arrays(arrays, ["repeat", *NAMES])
        return table.select(SCHEDULE.names).replace_schema_metadata(metadata)

    @classmethod
    def from_table(cls, table: pa.Table, repeat: int) -> "Schedule":
        """Read back the schedule of one repeat from (a concatenation of) `to_table` tables."""
        shape = json.loads(table.schema.metadata[_METADATA])
        rows = table.filter(pc.equal(table["repeat"], repeat)).drop_columns(["repeat"]).to_pylist()
        for row in rows:
            if row.get("hash_ids") is not None:
                row["hash_ids"] = tuple(row["hash_ids"])
        return cls(
            tuple(ScheduledRequest(**row) for row in rows),
            tuple(Phase(**phase) for phase in shape["phases"]),
            shape["end_s"],
            shape["left_out"],
        )


@dataclass(frozen=True)
class Outline:
    """What a stored schedule says in its footer."""

    requests: int
    end_s: float


def read_outline(file: Path) -> Outline:
    """Read how many requests a schedule's file has and how long it is, and no request.

    Raises OSError, ValueError (Arrow's own among them) and KeyError for what is no schedule.
    """
    footer = pq.read_metadata(file)
    return Outline(footer.num_rows, json.loads(footer.metadata[_METADATA])["end_s"])


def time_generator(seed: int, repeat: int) -> np.random.Generator:
    """Return the stream that arrival times are drawn from."""
    return np.random.default_rng(np.random.SeedSequence([seed, repeat, _TIMES]))


def draw_documents(document_ids: Sequence[str], count: int, seed: int, repeat: int) -> list[str]:
    """Return `count` document ids: whole shuffled passes, so that all are used equally often.

    The stream is its own, so that another arrival process meets the same documents in order.
    """
    generator = np.random.default_rng(np.random.SeedSequence([seed, repeat, _DOCUMENTS]))
    passes = max(1, -(-count // len(document_ids)))
    order = np.concatenate([generator.permutation(len(document_ids)) for _ in range(passes)])
    return [document_ids[index] for index in order[:count]]

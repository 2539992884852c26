"""The files that a run writes while it goes on, and their final parquet form."""

from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from bellman.app.texts import TextStore
from bellman.episode import EpisodePlan, EpisodeResult
from bellman.records import (
    REQUESTS,
    TEXTS,
    TIMELINE,
    JsonLinesWriter,
    read_json_lines,
    write_json,
    write_parquet,
)
from bellman.timeline import TimelineRow

SCHEMAS = {"requests": REQUESTS, "timeline": TIMELINE, "texts": TEXTS}


class Recorder:
    """Open record files of a run folder: request, timeline and text lines; episodes and energy.

    Lines are written as they come; energy.json and episodes.json after each episode; the parquet
    files on the way out, also after a failure.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.requests = JsonLinesWriter(folder / "requests.jsonl")
        self._timeline = JsonLinesWriter(folder / "timeline.jsonl")
        self._texts = JsonLinesWriter(folder / "texts.jsonl")
        self.texts = TextStore(self._texts)
        self._energy: dict[str, list[dict[str, Any]]] = {"windows": [], "meters": []}
        self._episodes: list[dict[str, Any]] = []

    def add_row(self, row: TimelineRow) -> None:
        """Append a row of the timeline."""
        self._timeline.write(row)

    def add_episode(
        self, plan: EpisodePlan, result: EpisodeResult, invalid_reasons: list[str], **more: Any
    ) -> None:
        """Add a finished episode to energy.json and episodes.json."""
        which = {"repeat": plan.repeat, "arm": plan.arm.name}
        self._energy["windows"] += [asdict(window) for window in result.windows]
        self._energy["meters"].append({**which, **asdict(result.energy)})
        self._episodes.append(
            {
                **which,
                "order": len(self._episodes),
                "schedule_hash": plan.schedule.digest,
                "phases": [asdict(phase) for phase in plan.schedule.phases],
                "end_s": result.end_s,
                "engine_prompt_tokens": result.engine_prompt_tokens,
                "engine_generated_tokens": result.engine_generated_tokens,
                "signals_received": result.receiver.received,
                "signals_absent": result.receiver.absent,
                "signals_malformed": result.receiver.malformed,
                "prefix_cache": result.session.prefix_cache,
                "prompt_salt": result.session.salt,
                "retries": result.session.retries,
                "pacing": asdict(result.pacing),
                "invalid_reasons": invalid_reasons,
                **more,
            }
        )
        write_json(self._energy, self._folder / "energy.json")
        write_json(self._episodes, self._folder / "episodes.json")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the files and write them as parquet.

        The lines stay whatever happens; that no parquet can be made of them hides no other failure.
        """
        for writer in (self.requests, self._timeline, self._texts):
            writer.close()
        try:
            for name, schema in SCHEMAS.items():
                table = read_json_lines(self._folder / f"{name}.jsonl", schema)
                write_parquet(table, self._folder / f"{name}.parquet")
        except (OSError, pa.ArrowException) as failure:
            if error is None:
                raise
            error.add_note(f"no parquet of the records: {failure}")

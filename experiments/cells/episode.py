"""The cell of most studies: one schedule served under one arm, with everything recorded."""

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bellman.load.schedule import Schedule
from bellman.records import TimelineRow, write_json, write_parquet
from bellman.run_files import BEGUN, SCHEDULES
from bellman.settings import read_episode
from bellman.source import Source
from experiments.cells.base import Watch
from experiments.cells.serve import serve
from experiments.parts import Parts
from experiments.recorder import Recorder


@dataclass(frozen=True)
class EpisodeCell:
    """One episode by its specification."""

    arm: str
    repeat: int
    values: Mapping[str, Any]
    """The entries of `EPISODE_KEYS`, and `arm`: that arm's own."""
    capacity_rps: float | None
    """What the arrivals' rates are relative to; None where they have rates of their own."""
    source: Source
    label: str
    axes: Mapping[str, Any] = field(default_factory=dict)

    def specification(self) -> dict[str, Any]:
        """Return what shapes the records."""
        own = {"name": self.arm, "repeat": self.repeat, "capacity_rps": self.capacity_rps}
        return own | dict(self.values)

    def run(self, folder: Path, parts: Parts, watch: Watch) -> dict[str, Any]:
        """Serve the schedule and record it."""
        settings = read_episode(self.values, self.arm, self.values["arm"])
        corpus = parts.corpus(self.values["corpus"])
        engine = parts.engine(self.values["engine"], self.values["corpus"])
        document_ids = [document.document_id for document in corpus.documents]
        drawn_from = [self.values["arrivals"], self.capacity_rps, settings.seed, self.repeat]
        schedule = parts.schedule(
            [drawn_from, self.values["corpus"]],
            lambda: settings.arrivals.schedule(
                self.capacity_rps, document_ids, settings.seed, self.repeat
            ),
        )
        keep_schedule(schedule, self.repeat, folder.parent.parent / SCHEDULES)
        write_json(
            {
                "arm": self.arm,
                "repeat": self.repeat,
                "source": engine.source,
                "schedule_hash": schedule.digest,
                "sends_schedule": settings.load_model.sends_schedule,
            },
            folder / BEGUN,
        )
        watch.begin(self.label, schedule.end_s)
        parts.run_coroutine(engine)  # one that does not start leaves no records
        with (
            Recorder(folder, engine.source) as recorder,
            warnings.catch_warnings(record=True) as caught,
        ):
            # A warning on stderr is gone with the terminal; here it stands beside the results.
            warnings.simplefilter("always", UserWarning)

            def take_row(row: TimelineRow) -> None:
                recorder.add_row(row)
                if row.replica is None:
                    watch.update(row)

            result = serve(
                settings,
                schedule,
                repeat=self.repeat,
                parts=parts,
                corpus=corpus,
                engine=engine,
                recorder=recorder,
                on_row=take_row,
            )
            lines = recorder.lines
        watch.finish(result.end_s)
        return {
            "arm": self.arm,
            "repeat": self.repeat,
            "seed": settings.seed,
            "source": engine.source,
            "response_source": engine.response_source,
            "capacity_rps": self.capacity_rps,
            "schedule_hash": schedule.digest,
            "phases": [asdict(phase) for phase in schedule.phases],
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
            "invalid_reasons": [
                *settings.pacing.invalid_reasons(result.pacing),
                *result.session.invalid_reasons,
            ],
            "warnings": [*(str(warning.message) for warning in caught), *result.session.warnings],
            "energy": {
                "windows": [asdict(window) for window in result.windows],
                "meter": asdict(result.energy),
            },
            "lines": lines,
        }


def keep_schedule(schedule: Schedule, repeat: int, folder: Path) -> None:
    """Write the schedule under its digest, unless it is there."""
    path = folder / f"{schedule.digest}.parquet"
    if not path.exists():
        folder.mkdir(exist_ok=True)
        write_parquet(schedule.to_table(repeat), path)

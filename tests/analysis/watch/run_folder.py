"""A run folder as a run writes it, line by line, with values that a test chooses."""

import json
import os
from pathlib import Path
from typing import Any

from bellman.json_line import json_line
from bellman.load.schedule import Phase, Schedule, ScheduledRequest
from bellman.records import RequestRecord, TimelineRow, write_json, write_parquet

SCHEDULE = Schedule(
    tuple(ScheduledRequest(number, float(number), "d", "calm") for number in range(40)),
    (Phase("calm", 0.0, 100.0, 0.4),),
    100.0,
)


def sample(time_s: float, **values: Any) -> bytes:
    row = {
        "repeat": 0,
        "arm": "none",
        "time_s": time_s,
        "phase": "calm",
        "source": "measured",
        "level": 0.5,
        "waiting": 3,
        "running": 7,
        "kv_usage": None,
        "word_budget": 150,
        "energy_j": None,
        "power_w": None,
        "prompt_tokens_total": None,
        "generated_tokens_total": None,
        "preemptions_total": None,
    }
    return json_line(TimelineRow(**{**row, **values}))


def ended(request_id: int, latency_s: float, status: str = "ok", **values: Any) -> bytes:
    intended_s = float(request_id)
    record = RequestRecord(
        repeat=0,
        arm="none",
        request_id=request_id,
        document_id="d",
        phase="calm",
        intended_s=intended_s,
        source="measured",
        status=status,  # type: ignore[arg-type]
        last_token_s=intended_s + latency_s if status == "ok" else None,
        **values,
    )
    return json_line(record)


class Writer:
    """Writes what a run would write, a piece at a call."""

    def __init__(self, folder: Path, *, executor: str = "serial.Serial") -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "config.yaml").write_text(
            f"name: a_night\nexecutor:\n  _target_: experiments.executors.{executor}\n"
        )

    def plan(self, *kinds: str) -> None:
        lines = [
            {"id": f"k{number}", "kind": kind, "label": f"{kind} {number}", "axes": {}}
            for number, kind in enumerate(kinds)
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (self.folder / "plan.jsonl").write_text(text)

    def status(self, status: str, reason: str | None = None) -> None:
        write_json({"status": status, "reason": reason}, self.folder / "status.json")

    def cell(self, number: int, *, at_s: float, source: str | None = "measured") -> Path:
        """Begin a cell at a time of the wall's clock; `source` None is no episode."""
        folder = self.folder / "episodes" / f"k{number}"
        folder.mkdir(parents=True)
        (folder / "specification.json").write_text("{}")
        os.utime(folder / "specification.json", (at_s, at_s))
        if source is not None:
            schedules = self.folder / "schedules"
            schedules.mkdir(exist_ok=True)
            write_parquet(SCHEDULE.to_table(0), schedules / f"{SCHEDULE.digest}.parquet")
            begun = {"arm": "none", "repeat": 0, "source": source, "sends_schedule": True}
            write_json(begun | {"schedule_hash": SCHEDULE.digest}, folder / "begun.json")
        return folder

    def append(self, number: int, name: str, *lines: bytes) -> None:
        with (self.folder / "episodes" / f"k{number}" / f"{name}.jsonl").open("ab") as file:
            file.write(b"".join(lines))

    def done(self, number: int, *, at_s: float, **content: Any) -> None:
        file = self.folder / "episodes" / f"k{number}" / "episode.json"
        write_json(content, file)
        os.utime(file, (at_s, at_s))


def energy(energy_j: float | None, reason: str | None = None) -> dict[str, Any]:
    """What a done episode says of its joules."""
    total = {"window": "total", "energy_j": energy_j, "reason": reason}
    return {"windows": [{"window": "calm", "energy_j": 1.0, "reason": None}, total]}

"""What a finished run is in a tracker's words: parameters, metrics, tags and files."""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from analysis import read
from bellman.errors import RunError
from bellman.redact import redact
from bellman.run_folder import DONE, read_status

NAME = re.compile(r"[^\w.\- :/]")
"""What no name in MLflow may hold; `_` stands for it."""
LONGEST = 6000
"""Characters of a parameter or a tag, at most."""
RESULTS = ("summary.json", "claims.json", "result.json", "grid.json", "grid.csv", "report.html")


@dataclass(frozen=True)
class Entries:
    """One run."""

    run_id: str
    experiment: str
    parameters: dict[str, str]
    """The configuration, a dotted key each."""
    metrics: dict[str, float]
    """Numbers of the summary and the claims; what is null or infinite is not among them."""
    tags: dict[str, str]
    files: list[Path]
    start_ms: int
    end_ms: int
    """Milliseconds of the epoch, as MLflow has them."""

    @property
    def digest(self) -> str:
        """SHA-256 over all that is copied as values: another one after another analysis."""
        content = [self.experiment, self.parameters, self.metrics, self.tags]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def entries_of(folder: Path) -> Entries:
    """Read a run folder; raises `RunError` where it holds no run that is done."""
    status = read_status(folder)
    if status is None or status["status"] != DONE:
        said = "holds no run" if status is None else f"is {status['status']}"
        raise RunError(f"{folder} {said}: only runs that are done are copied")
    config = redact(read.config(folder / "config.yaml"))
    summary = read.json_file(folder / "summary.json", {})
    claims = read.json_file(folder / "claims.json", {})
    provenance = read.json_file(folder / "provenance.json", {})
    found = dict(numbers(summary.get("arms", {}), ""))
    found |= dict(claim_numbers(claims.get("claims", [])))
    metrics = {
        NAME.sub("_", name): float(value)
        for name, value in found.items()
        if value is not None and math.isfinite(value)
    }
    tags = {
        "bellman.run_id": status["run_id"],
        "source": summary.get("source") or claims.get("source") or "see the files",
        "study": read.json_file(folder / "study.json", {}).get("study"),
        "response_source": summary.get("response_source"),
        "invalid": "; ".join(claims.get("invalid_reasons") or []) or None,
        "null_or_infinite": f"{len(found) - len(metrics)} numbers, in the files alone",
        "code_digest": provenance.get("code_digest"),
        "commit": (provenance.get("git") or {}).get("commit"),
        "folder": str(folder.resolve()),
    } | {f"verdict.{claim_name(one)}": one["verdict"] for one in claims.get("claims", [])}
    return Entries(
        run_id=status["run_id"],
        experiment=str(config.get("name") or folder.parent.name),
        parameters={NAME.sub("_", key): value[:LONGEST] for key, value in flat(config)},
        metrics=metrics,
        tags={NAME.sub("_", key): str(tags[key])[:LONGEST] for key in tags if tags[key]},
        files=[folder / name for name in RESULTS if (folder / name).exists()]
        + sorted((folder / "figures").glob("*.png")),
        start_ms=milliseconds(provenance.get("time_utc") or status["time_utc"]),
        end_ms=milliseconds(status["time_utc"]),
    )


def numbers(value: Any, name: str) -> Iterator[tuple[str, float | None]]:
    """Yield the numbers of nested mappings by their dotted names; null and `inf` among them."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from numbers(inner, f"{name}.{key}" if name else str(key))
    elif value is None or value == "inf":
        yield name, None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value


def claim_numbers(claims: list[dict[str, Any]]) -> Iterator[tuple[str, float | None]]:
    """Yield each claim's estimate and interval, named with their unit."""
    for claim in claims:
        for name in ("estimate", "low", "high"):
            named = f"claim.{claim_name(claim)}.{name}_{claim['unit']}"
            yield from numbers(claim[name], named)


def claim_name(claim: dict[str, Any]) -> str:
    """Return the arm that a claim is about, and its subject."""
    return f"{claim['treatment']}.{claim['claim']}"


def flat(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the values of nested mappings as texts, by their dotted keys."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from flat(inner, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, value if isinstance(value, str) else json.dumps(value)


def milliseconds(time_utc: str) -> int:
    """Return a time as MLflow has it."""
    return round(datetime.fromisoformat(time_utc).timestamp() * 1000)

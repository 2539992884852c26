"""Reads run folders into pandas frames, with the derived times of every request."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from omegaconf import OmegaConf

from bellman.errors import RunError
from bellman.records import STATUSES, WARMUP

CONGESTED = "congested"
"""The phase that the paper's claims are about."""
INTERRUPTED = "interrupted: no record was written"
"""Reason of an intended request that a killed run left without a record."""


@dataclass(frozen=True)
class Phase:
    """One part of the schedule, the same in all repeats."""

    name: str
    start_s: float
    end_s: float
    rate_rps: float | None

    @property
    def length_s(self) -> float:
        """Seconds from start to end."""
        return self.end_s - self.start_s


@dataclass(frozen=True)
class Run:
    """Everything a run folder holds. Frames have one row per request, tick, window or text."""

    folder: Path
    requests: pd.DataFrame
    timeline: pd.DataFrame
    energy: pd.DataFrame
    quality: pd.DataFrame | None
    """None when the run was not scored."""
    episodes: list[dict[str, Any]]
    phases: tuple[Phase, ...]
    baseline: str
    treatments: tuple[str, ...]
    config: dict[str, Any]
    provenance: dict[str, Any]
    status: dict[str, Any]
    capacity: dict[str, Any]

    @property
    def arms(self) -> tuple[str, ...]:
        """All arms, the baseline first; an arm compared with itself stands here once."""
        return tuple(dict.fromkeys((self.baseline, *self.treatments)))

    @property
    def source(self) -> str:
        """`simulated` or `measured`; both joined should a folder ever mix them."""
        return " + ".join(sorted(self.requests["source"].dropna().unique())) or "n/a"

    @property
    def response_source(self) -> str:
        """What the answers' texts are: `extractive stand-in`, `recorded from ...`."""
        found = {str(episode.get("response_source", "n/a")) for episode in self.episodes}
        return " + ".join(sorted(found)) or "n/a"

    @property
    def counted_phases(self) -> tuple[Phase, ...]:
        """All phases but the warm-up."""
        return tuple(phase for phase in self.phases if phase.name != WARMUP)

    @property
    def invalid_reasons(self) -> list[str]:
        """Why the run's load was not what it should be; empty when it is valid."""
        reasons = list(self.status.get("invalid_reasons") or [])
        for episode in self.episodes:
            which = f"repeat {int(episode['repeat']) + 1}, {episode['arm']}"
            reasons += [f"{which}: {reason}" for reason in episode.get("invalid_reasons") or []]
        return [str(reason) for reason in reasons]

    @property
    def invalid_text(self) -> str:
        """The first two reasons and how many more there are; empty when the run is valid."""
        more = len(self.invalid_reasons) - 2
        shown = "; ".join(self.invalid_reasons[:2])
        return f"{shown}; and {more} more" if more > 0 else shown

    @property
    def cut_short(self) -> str | None:
        """`interrupted` or `failed` when the run did not reach its end, else None."""
        status = self.status.get("status")
        return status if status in {"interrupted", "failed"} else None

    @property
    def complete_repeats(self) -> list[int]:
        """Repeats in which every arm ran to its end: the only ones whose arms are compared."""
        cut = self.requests["reason"] == INTERRUPTED
        whole = self.requests[~cut].groupby("repeat", observed=True)["arm"].nunique()
        broken = set(self.requests.loc[cut, "repeat"])
        complete = whole.index[whole == len(self.arms)].to_numpy(dtype=np.int64)
        return [int(repeat) for repeat in complete if repeat not in broken]

    def phase(self, name: str) -> Phase | None:
        """Return the phase called `name`, or None when the schedule has none."""
        return next((phase for phase in self.phases if phase.name == name), None)

    def above_capacity(self, phase: Phase) -> bool | None:
        """Whether more is offered than the engine can serve; None when either rate is unknown."""
        capacity_rps = self.capacity.get("capacity_rps")
        if capacity_rps is None or phase.rate_rps is None:
            return None
        return phase.rate_rps > float(capacity_rps)


def load_run(folder: Path) -> Run:
    """Load one run folder. Raises `RunError` when it holds no finished records."""
    folder = Path(folder)
    if not (folder / "requests.parquet").exists():
        remedy = "give the folder of a run; a killed one: python -m analysis.rebuild FOLDER"
        raise RunError(f"{folder}: no requests.parquet; {remedy}")
    requests = pd.read_parquet(folder / "requests.parquet")
    episodes = _read_json(folder / "episodes.json", [])
    arms = _read_json(folder / "arms.json", None) or _arms_by_first_seen(requests)
    order = list(dict.fromkeys((arms["baseline"], *arms["treatments"])))
    phases = _phases(episodes, requests)
    return Run(
        folder=folder,
        requests=derive(_typed(requests, order, phases)),
        timeline=_typed(_read_frame(folder / "timeline.parquet"), order, phases),
        energy=_energy(_read_json(folder / "energy.json", {})),
        quality=_quality(folder / "quality.parquet"),
        episodes=episodes,
        phases=phases,
        baseline=arms["baseline"],
        treatments=tuple(arms["treatments"]),
        config=_config(folder / "config.yaml"),
        provenance=_read_json(folder / "provenance.json", {}),
        status=_read_json(folder / "status.json", {}),
        capacity=_read_json(folder / "capacity.json", {}) or {},
    )


def load_requests(folders: Sequence[Path]) -> pd.DataFrame:
    """Load the requests of several runs (a sweep) into one frame; column `run` names the folder."""
    frames = [load_run(folder).requests.assign(run=Path(folder).name) for folder in folders]
    frame = pd.concat(frames, ignore_index=True)
    return frame.astype({"run": "category", "arm": "category", "phase": "category"})


def derive(requests: pd.DataFrame) -> pd.DataFrame:
    """Add the derived columns, all in seconds and null where a time is missing.

    e2e_s = last token - intended send; service_latency_s = last token - actual send;
    client_wait_s = actual - intended send; ttft_s = first token - intended send;
    tpot_s = (last - first token) / (output tokens - 1), null for fewer than two tokens. The longest
    gap between two chunks of the stream, longest_gap_s, is recorded as it is.
    """
    gaps = (requests["output_tokens"] - 1).where(requests["output_tokens"] > 1)
    return requests.assign(
        ok=requests["status"] == "ok",
        e2e_s=requests["last_token_s"] - requests["intended_s"],
        service_latency_s=requests["last_token_s"] - requests["sent_s"],
        client_wait_s=requests["sent_s"] - requests["intended_s"],
        ttft_s=requests["first_token_s"] - requests["intended_s"],
        tpot_s=(requests["last_token_s"] - requests["first_token_s"]) / gaps,
    )


def _typed(frame: pd.DataFrame, arms: list[str], phases: Sequence[Phase]) -> pd.DataFrame:
    """Make arm, phase and status ordered categories, so that tables and legends keep the order."""
    if frame.empty:
        return frame
    names = list(dict.fromkeys([*(phase.name for phase in phases), *frame["phase"].dropna()]))
    types: dict[str, Any] = {
        "arm": pd.CategoricalDtype(list(dict.fromkeys([*arms, *frame["arm"]])), ordered=True),
        "phase": pd.CategoricalDtype(names, ordered=True),
    }
    if "status" in frame:
        types["status"] = pd.CategoricalDtype(list(STATUSES), ordered=True)
    for name in ("source", "reason", "document_id", "finish_reason"):
        if name in frame:
            types[name] = "category"  # few values on many rows
    return frame.astype(types)


def _phases(episodes: list[dict[str, Any]], requests: pd.DataFrame) -> tuple[Phase, ...]:
    if episodes:
        return tuple(
            Phase(p["name"], float(p["start_s"]), float(p["end_s"]), p.get("rate_rps"))
            for p in episodes[0]["phases"]
        )
    spans = requests.groupby("phase", sort=False)["intended_s"].agg(["min", "max"])
    return tuple(
        Phase(str(name), float(low), float(high), None)
        for name, low, high in spans.sort_values("min").itertuples()
    )


def _arms_by_first_seen(requests: pd.DataFrame) -> dict[str, Any]:
    seen = [str(arm) for arm in requests["arm"].unique()]
    return {"baseline": seen[0] if seen else "none", "treatments": seen[1:]}


def _energy(content: dict[str, Any]) -> pd.DataFrame:
    names = ["repeat", "arm", "window", "start_s", "end_s", "energy_j", "mean_power_w"]
    names += ["source", "method", "reason"]
    frame = pd.DataFrame(content.get("windows") or [], columns=names)
    numbers = ["start_s", "end_s", "energy_j", "mean_power_w"]
    return frame.astype(dict.fromkeys(numbers, np.float64))


def _quality(path: Path) -> pd.DataFrame | None:
    return pd.read_parquet(path) if path.exists() else None


def _config(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    content = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
    assert isinstance(content, dict)
    return {str(key): value for key, value in content.items()}


def _read_frame(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.exists() else pd.DataFrame()


def _read_json(path: Path, default: Any) -> Any:
    return json.loads(path.read_text()) if path.exists() else default

"""Reads run folders into pandas frames, with the derived times of every request."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis import metrics, read
from analysis.gather import GATHERED
from analysis.row_groups import RowGroups, point_key
from bellman.errors import RunError
from bellman.load.schedule import Phase, Schedule
from bellman.records import REQUESTS, STATUSES, WARMUP

NUMBERS = ("sent_s", "first_token_s", "last_token_s", "output_tokens")
"""Columns that the derived ones are computed from."""


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
    paper_arm: str | None
    """The treatment that stands for the paper's; None where the records do not say."""
    config: dict[str, Any]
    provenance: dict[str, Any]
    status: dict[str, Any]
    capacity: dict[str, Any]
    no_results: str | None
    """Why a study says of itself that its numbers are no results; None for all others."""
    not_usable: list[str]
    """What could not be used of the records."""

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
        reasons = [self.no_results] if self.no_results else []
        reasons += self.status.get("invalid_reasons") or []
        for episode in self.episodes:
            which = f"repeat {int(episode['repeat']) + 1}, {episode['arm']}"
            reasons += [f"{which}: {reason}" for reason in episode.get("invalid_reasons") or []]
        return [str(reason) for reason in reasons]

    @property
    def invalid_text(self) -> str:
        """The first two reasons and how many more there are; empty when the run is valid."""
        return few(self.invalid_reasons)

    @property
    def warnings(self) -> list[str]:
        """What makes the numbers doubtful, though the load was what it should be."""
        said: dict[str, int] = {}
        for episode in self.episodes:
            for text in dict.fromkeys(episode.get("warnings") or []):
                said[text] = said.get(text, 0) + 1
        all_episodes = len(self.episodes)
        found = [*self.not_usable]
        found += [f"{text} ({count} of {all_episodes} episodes)" for text, count in said.items()]
        return found + unknown_quantities(self.requests) + energy_doubts(self.energy)

    @property
    def cut_short(self) -> str | None:
        """`interrupted` or `failed` when the run did not reach its end, else None."""
        status = self.status.get("status")
        return status if status in {"interrupted", "failed"} else None

    def complete_repeats(self, arm: str) -> list[int]:
        """Repeats in which the arm and the baseline ran to their ends: those that are compared.

        An arm that is missing costs its own comparison only. An episode stands in episodes.json
        once it has ended; the records of one that was cut short say `unfinished`, as those of a
        finished one may.
        """
        ended = {(int(episode["repeat"]), str(episode["arm"])) for episode in self.episodes}
        repeats = sorted({repeat for repeat, _ in ended})
        return [n for n in repeats if (n, arm) in ended and (n, self.baseline) in ended]

    def of_arms(self, arms: Sequence[str]) -> "Run":
        """Return the run as if it had these arms alone; the baseline must be one of them."""
        kept = set(arms)

        def own(frame: pd.DataFrame) -> pd.DataFrame:
            return frame if frame.empty else frame[frame["arm"].isin(kept)]

        return replace(
            self,
            requests=own(self.requests),
            timeline=own(self.timeline),
            energy=own(self.energy),
            episodes=[episode for episode in self.episodes if episode["arm"] in kept],
            treatments=tuple(arm for arm in self.treatments if arm in kept),
        )

    def phase(self, name: str) -> Phase | None:
        """Return the phase called `name`, or None when the schedule has none."""
        return next((phase for phase in self.phases if phase.name == name), None)

    def above_capacity(self, phase: Phase) -> bool | None:
        """Whether more is offered than the engine can serve; None when either rate is unknown."""
        capacity_rps = self.capacity.get("capacity_rps")
        if capacity_rps is None or np.isnan(phase.rate_rps):
            return None
        return phase.rate_rps > float(capacity_rps)


class Records:
    """The gathered records of a run folder, read once, to be looked at point by point."""

    def __init__(self, folder: Path) -> None:
        """Open a folder; raises `RunError` when it holds no gathered records."""
        self.folder = Path(folder)
        if not (self.folder / "requests.parquet").exists():
            remedy = "give the folder of a run, or gather it: python -m analysis.present FOLDER"
            raise RunError(f"{folder}: no requests.parquet; {remedy}")
        self.study: dict[str, Any] = read.json_file(self.folder / "study.json", {})
        self._requests = RowGroups(self.folder / "requests.parquet")
        timeline = self.folder / "timeline.parquet"
        self._timeline = RowGroups(timeline) if timeline.exists() else None
        self._episodes = _by_point(read.json_file(self.folder / "episodes.json", []))
        energy = read.json_file(self.folder / "energy.json", {})
        self._windows = _by_point(energy.get("windows") or [])
        self._capacity = _by_point(read.json_file(self.folder / "capacity.json", []))
        self._quality = _quality(self.folder / "quality.parquet")
        self._config = read.config(self.folder / "config.yaml")
        self._provenance = read.json_file(self.folder / "provenance.json", {})
        self._status = read.json_file(self.folder / "status.json", {})
        self._not_usable = read.json_file(self.folder / GATHERED, {}).get("notes") or []

    @property
    def points(self) -> list[dict[str, Any]]:
        """The points of the study that have an episode, in its order."""
        return [entries[0].get("axes") or {} for entries in self._episodes.values()]

    def at(self, point: Mapping[str, Any] | None = None) -> Run:
        """Return what was recorded at a point; of a study without axes everything."""
        key = None if point is None else point_key(point)
        # What an earlier version did not record yet is null.
        requests = self._requests.at(point).reindex(columns=["episode_id", *REQUESTS.names])
        episodes = _of(self._episodes, key)
        arms = self.study or _arms_by_first_seen(requests)
        treatments = tuple(name for name in arms["arms"] if name != arms["baseline"])
        order = [arms["baseline"], *treatments]
        phases = _phases(self.folder, episodes, requests)
        ticks = pd.DataFrame() if self._timeline is None else self._timeline.at(point)
        return Run(
            folder=self.folder,
            requests=derive(_typed(requests, order, phases)),
            timeline=_typed(ticks, order, phases),
            energy=_energy(_of(self._windows, key)),
            quality=self._quality,
            episodes=episodes,
            phases=phases,
            baseline=arms["baseline"],
            treatments=treatments,
            paper_arm=arms.get("paper_arm"),
            config=self._config,
            provenance=self._provenance,
            status=self._status,
            capacity=capacity_of(_of(self._capacity, key), episodes),
            no_results=self.study.get("no_results"),
            not_usable=self._not_usable,
        )


def load_run(folder: Path, point: Mapping[str, Any] | None = None) -> Run:
    """Load one run folder, or one point of its study; raises `RunError` without records."""
    return Records(folder).at(point)


def _by_point(entries: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        found.setdefault(point_key(entry.get("axes") or {}), []).append(entry)
    return found


def _of(by_point: dict[str, list[dict[str, Any]]], key: str | None) -> list[dict[str, Any]]:
    if key is None:
        return [entry for entries in by_point.values() for entry in entries]
    return by_point.get(key, [])


def capacity_of(measured: list[dict[str, Any]], episodes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the measured capacity, else the one that the episodes were given."""
    if measured:
        return measured[0]
    given = next((episode.get("capacity_rps") for episode in episodes), None)
    method = "not needed" if given is None else "given: arrivals.capacity_rps"
    return {"capacity_rps": given, "method": method, "source": None}


def few(reasons: Sequence[str]) -> str:
    """Return the first two reasons in one line, and how many more there are."""
    more = len(reasons) - 2
    return "; ".join(reasons[:2]) + (f"; and {more} more" if more > 0 else "")


def unknown_quantities(requests: pd.DataFrame) -> list[str]:
    """Return, in a line, what a server or another tool did not say of requests that ended ok."""
    counts = {
        column.removesuffix("_s"): int(metrics.unknown(requests, column).sum())
        for column in ("ttft_s", "tpot_s", "e2e_s", "output_tokens")
    }
    unknown = ", ".join(f"{name} of {count}" for name, count in counts.items() if count)
    ok = metrics.completed(requests)
    return [f"of {ok} ok requests unknown: {unknown}; what needs it is n/a"] if unknown else []


def energy_doubts(windows: pd.DataFrame) -> list[str]:
    """Return why to distrust joules that were read: a line for each reason."""
    doubtful = windows[windows["energy_j"].notna() & windows["reason"].notna()]
    of_reason: dict[str, list[str]] = {}
    columns = (doubtful[name] for name in ("window", "repeat", "arm", "reason"))
    for window, repeat, arm, reason in zip(*columns, strict=True):
        of_reason.setdefault(reason, []).append(f"{window} energy of repeat {repeat + 1}, {arm}")
    return [
        f"{first}{f' and {len(more)} more windows' if more else ''}: {reason}"
        for reason, (first, *more) in of_reason.items()
    ]


def derive(requests: pd.DataFrame) -> pd.DataFrame:
    """Add the derived columns, all in seconds and null where a time is missing.

    e2e_s = last token - intended send; service_latency_s = last token - actual send;
    client_wait_s = actual - intended send; ttft_s = first token - intended send, whether of
    reasoning or of the answer; ttfc_s = first token of the answer itself - intended send;
    tpot_s = (last - first token) / (output tokens - 1), reasoning included in both, null for fewer
    than two tokens, and where all came at once (what holds a stream back hides how fast it was);
    longest_gap_s = longest wait between two chunks of the stream, null without two.
    """
    # A column that is unknown of all requests has no type.
    unknown = [name for name in NUMBERS if requests[name].dtype == object]
    requests = requests.astype(dict.fromkeys(unknown, np.float64))
    streamed_s = requests["last_token_s"] - requests["first_token_s"]
    gaps = (requests["output_tokens"] - 1).where(requests["output_tokens"] > 1)
    return requests.assign(
        ok=requests["status"] == "ok",
        e2e_s=requests["last_token_s"] - requests["intended_s"],
        service_latency_s=requests["last_token_s"] - requests["sent_s"],
        client_wait_s=requests["sent_s"] - requests["intended_s"],
        ttft_s=requests["first_token_s"] - requests["intended_s"],
        ttfc_s=requests.get("first_content_token_s", math.nan) - requests["intended_s"],
        tpot_s=streamed_s.where(streamed_s != 0) / gaps,
        longest_gap_s=_longest(requests["chunk_gaps_s"]),
    )


def _longest(gaps_s: pd.Series) -> pd.Series:
    """Return the longest gap of each request; null where it has none."""
    known = gaps_s[gaps_s.notna()]
    return known.map(lambda gaps: max(gaps, default=math.nan)).reindex(gaps_s.index).astype(float)


def _typed(frame: pd.DataFrame, arms: list[str], phases: Sequence[Phase]) -> pd.DataFrame:
    """Make arm, phase and status ordered categories, so that tables and legends keep the order."""
    if frame.empty:
        return frame
    seen_phases, seen_arms = frame["phase"].dropna().unique(), frame["arm"].unique()
    names = list(dict.fromkeys([*(phase.name for phase in phases), *seen_phases]))
    types: dict[str, Any] = {
        "arm": pd.CategoricalDtype(list(dict.fromkeys([*arms, *seen_arms])), ordered=True),
        "phase": pd.CategoricalDtype(names, ordered=True),
    }
    if "status" in frame:
        types["status"] = pd.CategoricalDtype(list(STATUSES), ordered=True)
    for name in ("source", "reason", "document_id", "finish_reason"):
        if name in frame:
            types[name] = "category"  # few values on many rows
    return frame.astype(types)


def _phases(
    folder: Path, episodes: list[dict[str, Any]], requests: pd.DataFrame
) -> tuple[Phase, ...]:
    """Return the phases that an episode or the schedule names, else those seen in the requests."""
    named = next((episode["phases"] for episode in episodes if "phases" in episode), None)
    if named is not None:
        return tuple(Phase(**phase) for phase in named)
    schedule = folder / "schedule.parquet"
    if schedule.exists():
        return Schedule.from_table(read.parquet(schedule), 0).phases
    # Another tool's records: the rates are not known.
    spans = requests.groupby("phase", sort=False)["intended_s"].agg(["min", "max"])
    return tuple(
        Phase(str(name), float(low), float(high), np.nan)
        for name, low, high in spans.sort_values("min").itertuples()
    )


def _arms_by_first_seen(requests: pd.DataFrame) -> dict[str, Any]:
    seen = [str(arm) for arm in requests["arm"].unique()]
    return {"baseline": seen[0] if seen else "none", "arms": seen}


def _energy(windows: list[dict[str, Any]]) -> pd.DataFrame:
    names = ["repeat", "arm", "window", "start_s", "end_s", "energy_j", "mean_power_w"]
    names += ["source", "method", "reason", "replicas_j"]
    frame = pd.DataFrame(windows, columns=names)
    numbers = ["start_s", "end_s", "energy_j", "mean_power_w"]
    return frame.astype(dict.fromkeys(numbers, np.float64))


def _quality(path: Path) -> pd.DataFrame | None:
    return read.frame(path) if path.exists() else None

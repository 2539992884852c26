"""Writes summary.json and claims.json of a run folder, from its records alone.

Times are in seconds, energy in joules, shares in [0, 1]. null: not measured. "inf": a percentile
that falls among requests without an answer.
"""

import functools
import math
from dataclasses import asdict
from typing import Any

import pandas as pd

from analysis import metrics
from analysis.claims import assess
from analysis.frames import Run
from analysis.goodput import judge
from analysis.made import analysis_digest
from analysis.prefix_caching import found_in
from analysis.quality import quality
from analysis.together import together
from analysis.verdict import Claim
from bellman.build import build_class
from bellman.load.schedule import Phase
from bellman.records import STATUSES, WARMUP, write_json
from bellman.slo import Slo

Values = dict[str, Any]
PERCENTILES = (50, 90, 95, 99)
GAP_PERCENTILES = (*PERCENTILES, 100)
LATENCIES = ("e2e", "service_latency", "ttft", "tpot")
COUNTS = ("prompt_tokens", "output_tokens", "output_words", "word_budget")
MEASURED = [
    *("arm", "repeat", "phase", "status", "ok", "sent_s", "last_token_s", "client_wait_s"),
    *(f"{name}_s" for name in (*LATENCIES, "ttfc")),
    *COUNTS,
    *("chunk_gaps_s", "attempts"),
]
"""Columns of the requests that are looked at here: each part of them is a copy."""
TOTAL = "total"
"""The energy window of everything that is counted."""


def summarize(run: Run) -> None:
    """Write summary.json and claims.json into a run's folder."""
    write_json(jsonable(summary(run)), run.folder / "summary.json")
    write_json(jsonable(claims(run)), run.folder / "claims.json")


def claims(run: Run) -> Values:
    """Return the content of claims.json."""
    found = assess(run)
    return {
        "source": run.source,
        "cut_short": run.cut_short,
        "invalid_reasons": run.invalid_reasons,
        "repeats": {arm: run.complete_repeats(arm) for arm in run.treatments},
        "made_by": analysis_digest(),
        "claims": [_claim(claim) for claim in found],
        "together": together(found),
    }


def summary(run: Run) -> Values:
    """Return the content of summary.json; an arm's totals are over its complete repeats."""
    slo = build_class(Slo, run.config.get("slo") or {}, "slo")
    start_s, end_s = metrics.span(run.counted_phases)
    return {
        "source": run.source,
        "response_source": run.response_source,
        "prefix_caching": found_in(run.episodes),
        "cut_short": run.cut_short,
        "invalid_reasons": run.invalid_reasons,
        "warnings": run.warnings,
        "repeats": sorted({int(repeat) for repeat in run.requests["repeat"].unique()}),
        "baseline": run.baseline,
        "treatments": list(run.treatments),
        "paper_arm": run.paper_arm,
        "capacity_rps": run.capacity.get("capacity_rps"),
        "slo": asdict(slo),
        "test_length_s": end_s - start_s,
        "phases": {
            phase.name: asdict(phase)
            | {"length_s": phase.length_s, "above_capacity": run.above_capacity(phase)}
            for phase in run.phases
        },
        "arms": {arm: _arm(run, arm, slo) for arm in run.arms},
    }


def _arm(run: Run, arm: str, slo: Slo) -> Values:
    """Measure an arm over its complete repeats, the only ones that can be compared, and in each."""
    begun = sorted(map(int, run.requests.loc[run.requests["arm"] == arm, "repeat"].unique()))
    complete = run.complete_repeats(arm)
    ends_s = [
        float(episode.get("end_s", math.nan))
        for episode in run.episodes
        if episode["arm"] == arm and episode["repeat"] in complete
    ]
    measured = functools.cache(lambda *of: _with_phases(run, _Part(run, arm, list(of)), slo))
    return (
        measured(*complete)
        | {"complete_repeats": complete, "replicas": _replicas(run, arm, complete)}
        | {"episode_s": sum(ends_s) / len(ends_s) if ends_s else None}
        | {"quality": quality(run, arm)}
        | {"repeats": [{"repeat": number} | measured(number) for number in begun]}
    )


def _replicas(run: Run, arm: str, repeats: list[int]) -> Values | None:
    """Return what each of an arm's engines answered and drew, by its name; None for one engine.

    Its joules are those of the counted time, repeats summed; None unless all were read.
    """
    windows = run.energy[(run.energy["arm"] == arm) & (run.energy["window"] == TOTAL)]
    parts = windows.loc[windows["repeat"].isin(repeats), "replicas_j"].dropna()
    if parts.empty:
        return None
    requests = run.requests[(run.requests["arm"] == arm) & run.requests["repeat"].isin(repeats)]
    answered = requests.loc[requests["ok"] & (requests["phase"] != WARMUP), "replica"]
    found = {}
    for name in parts.iloc[0]:
        joules = [part[name] for part in parts]
        known = len(joules) == len(repeats) and None not in joules
        found[name] = {
            "completed": int((answered == name).sum()),
            "energy_j": float(sum(joules)) if known else None,
        }
    return found


class _Part:
    """The records of one arm in some repeats."""

    def __init__(self, run: Run, arm: str, repeats: list[int]) -> None:
        def own(frame: pd.DataFrame) -> pd.DataFrame:
            if frame.empty:
                return frame
            return frame[(frame["arm"] == arm) & frame["repeat"].isin(repeats)]

        self.requests = own(run.requests[MEASURED])
        self.ticks = own(run.timeline)
        self.windows = own(run.energy)
        self.repeats = len(repeats)

    def energy_j(self, window: str) -> float | None:
        """Return the window's joules, repeats summed; None unless every repeat was read."""
        values = self.windows.loc[self.windows["window"] == window, "energy_j"]
        complete = len(values) == self.repeats and values.notna().all()
        return float(values.sum()) if complete else None

    def generated_tokens(self, start_s: float, end_s: float) -> float | None:
        """Return the tokens generated in the window, repeats summed."""
        if self.ticks.empty:
            return None
        parts = [
            metrics.counted(ticks, "generated_tokens_total", start_s, end_s)
            for _, ticks in self.ticks.groupby("repeat")
        ]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == self.repeats else None


def _with_phases(run: Run, part: _Part, slo: Slo) -> Values:
    phases = {phase.name: _measure(part, slo, (phase,), phase.name) for phase in run.phases}
    return _measure(part, slo, run.counted_phases, TOTAL) | {"phases": phases}


def _measure(part: _Part, slo: Slo, phases: tuple[Phase, ...], window: str) -> Values:
    """Measure one arm in consecutive phases: requests intended there, and what happened there.

    `unknown` is the number of ok requests by the quantity that is not known of them.
    """
    group = part.requests[part.requests["phase"].isin([phase.name for phase in phases])]
    start_s, end_s = metrics.span(phases)
    length_s = (end_s - start_s) * part.repeats
    inside = metrics.finished_inside(part.requests, start_s, end_s)
    energy_j = part.energy_j(window)
    # The window of the whole episode also holds the answers of the drain.
    answered = metrics.completed(group) if window == TOTAL else len(inside)
    generated = part.generated_tokens(start_s, math.inf if window == TOTAL else end_s)
    judged = judge(group, slo)
    statuses = {s: int((group["status"] == s).sum()) for s in STATUSES}
    values: Values = {
        "length_s": end_s - start_s,
        "offered": metrics.offered(group),
        "admitted": metrics.admitted(group),
        "rejected": metrics.rejected(group),
        "retried": metrics.retried(group),
        "completed": metrics.completed(group),
        "completed_inside": len(inside),
        "statuses": statuses,
        "lost_share": metrics.lost_share(group),
        "shares": {s: metrics.per(count, len(group)) for s, count in statuses.items()},
        "offered_rps": metrics.offered_rate(group, length_s),
        "achieved_rps": metrics.achieved_rate(group, length_s),
        "throughput_rps": metrics.per(len(inside), length_s),
        "goodput_rps": judged.goodput_rps(length_s),
        "slo_attainment": judged.fraction,
        "slo_attainment_bounds": judged.bounds,
        "unjudged": judged.unjudged,
        "unjudged_reason": judged.reason,
        "lag_p50_s": metrics.lag_percentile(group, 50),
        "lag_p99_s": metrics.lag_percentile(group, 99),
        "lag_max_s": metrics.lag_max(group),
        "prompt_tokens": metrics.total(group, "prompt_tokens"),
        "output_tokens": metrics.total(group, "output_tokens"),
        "output_words_mean": metrics.mean(group, "output_words"),
        "word_budget_mean": metrics.mean(group, "word_budget"),
        "generated_tokens": generated,
        "energy_j": energy_j,
        "energy_j_per_completed_request": metrics.per(energy_j, answered),
        "energy_j_per_output_token": metrics.per(energy_j, generated),
    }
    for name in (*LATENCIES, "ttfc"):
        column = f"{name}_s"
        values[f"{name}_mean_s"] = metrics.latency_mean(group, column)
        found = metrics.latency_percentiles(group, column, PERCENTILES)
        values |= {f"{name}_p{p}_s": value for p, value in zip(PERCENTILES, found, strict=True)}
    values["e2e_all_mean_s"] = metrics.latency_mean_of_all(group, "e2e_s")
    found = metrics.latency_percentiles_of_ok(group, "e2e_s", PERCENTILES)
    values |= {f"e2e_ok_p{p}_s": value for p, value in zip(PERCENTILES, found, strict=True)}
    columns = [*(f"{name}_s" for name in LATENCIES), *COUNTS]
    unknown = {column: int(metrics.unknown(group, column).sum()) for column in columns}
    values["unknown"] = {column: count for column, count in unknown.items() if count}
    found = metrics.chunk_gap_percentiles(group, GAP_PERCENTILES)
    values |= {f"chunk_gap_p{p}_s": gap for p, gap in zip(GAP_PERCENTILES, found, strict=True)}
    if not part.repeats:  # nothing ran: no number of requests, not even 0
        return dict.fromkeys(values) | {"length_s": values["length_s"]}
    return values


def _claim(claim: Claim) -> Values:
    """Return a claim with estimate, low and high as plain entries."""
    return {
        "claim": claim.name,
        "treatment": claim.treatment,
        "paper": claim.paper,
        "paper_value": claim.paper_value,
        "unit": claim.unit,
        "estimate": claim.estimate.value,
        "low": claim.estimate.low,
        "high": claim.estimate.high,
        "definition": claim.definition,
        "sensitive_to": claim.sensitive_to,
        "source": claim.source,
        "verdict": claim.verdict,
        "reason": claim.reason,
        "caveats": list(claim.caveats),
        "companions": [
            {
                "name": companion.name,
                "unit": companion.unit,
                "estimate": companion.estimate.value,
                "low": companion.estimate.low,
                "high": companion.estimate.high,
                "definition": companion.definition,
                "sensitive_to": companion.sensitive_to,
                "verdict": companion.verdict,
                "reason": companion.reason,
                "caveats": list(companion.caveats),
            }
            for companion in claim.companions
        ],
    }


def jsonable(value: Any) -> Any:
    """Return the value with infinities as "inf" and NaN as null, as JSON has neither."""
    if isinstance(value, dict):
        return {key: jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf"
    return value

"""Every reading of the paper's claims at every point of the map, and whether it holds there."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.claims import assess
from analysis.frames import Records, Run
from analysis.prefix_caching import found_in, of_points
from analysis.summarize import jsonable
from analysis.together import together
from analysis.verdict import Claim
from bellman.load.schedule import CONGESTED
from bellman.records import write_json

Values = dict[str, Any]
RESULTS = "claims_map.json"
LATENCY, ENERGY, SERVED = "times", "less", "more"
"""The units of the three claims, which tell them apart."""


def results(folder: Path) -> Values:
    """Return the grids and, for every point, the readings and what the engine did meanwhile."""
    records = Records(folder)
    points = [point_results(point, records.at(point)) for point in records.points]
    sources = sorted({point["source"] for point in points})
    return {
        "source": " + ".join(sources) or "n/a",
        "prefix_caching": of_points(points),
        "baseline": records.study["baseline"],
        "treatment": records.study["paper_arm"],
        "grids": records.study["grids"],
        "points": points,
    }


def write_results(folder: Path) -> Values:
    """Write claims_map.json of a gathered run folder; return its content."""
    found: Values = jsonable(results(folder))
    write_json(found, folder / RESULTS)
    return found


def point_results(axes: Mapping[str, Any], run: Run) -> Values:
    """Return the readings at one point."""
    claims = [claim for claim in assess(run) if claim.treatment == run.paper_arm]
    return {
        "axes": dict(axes),
        "source": run.source,
        "prefix_caching": found_in(run.episodes),
        "invalid_reasons": run.invalid_reasons,
        "capacity_rps": run.capacity.get("capacity_rps"),
        "readings": [reading for claim in claims for reading in readings(claim)],
        "together": {one["reading"]: one["reproduced"] for one in together(claims)},
        "window": {arm: window(run, arm) for arm in run.arms},
    }


def readings(claim: Claim) -> list[Values]:
    """Return the claim as it is defined, then its other readings that have a verdict."""
    found = [(claim.name, claim.estimate, claim.verdict)]
    for one in claim.companions:
        if one.verdict is not None:
            found.append((f"{claim.name}: {one.name}", one.estimate, one.verdict))
    measured = claim.verdict != "not measured"
    return [
        {
            "reading": name,
            "unit": claim.unit,
            "paper_value": claim.paper_value,
            "estimate": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "holds": measured and verdict == "reproduced",
        }
        for name, estimate, verdict in found
    ]


def window(run: Run, arm: str) -> dict[str, float | None]:
    """Return an arm's mean batch and mean power, in W, in the congested window."""
    repeats = run.complete_repeats(arm)

    def mean(frame: pd.DataFrame, column: str) -> float | None:
        rows = frame[(frame["arm"] == arm) & frame["repeat"].isin(repeats)]
        values = rows[column].astype(np.float64)
        return None if values.isna().any() or values.empty else float(values.mean())

    ticks, windows = run.timeline, run.energy
    return {
        "running": mean(ticks[ticks["phase"] == CONGESTED], "running"),
        "power_w": mean(windows[windows["window"] == CONGESTED], "mean_power_w"),
    }

"""Every arm at every point of a sensitivity study, from its records."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from analysis.frames import Records, Run
from analysis.prefix_caching import found_in, of_points
from analysis.ranking.results import row
from analysis.sensitivity.classes import of_classes
from analysis.summarize import jsonable, summary
from bellman.build import build_class
from bellman.load.schedule import CONGESTED
from bellman.records import write_json
from bellman.slo import Slo

Values = dict[str, Any]
RESULTS = "sensitivity.json"
LISTENING = "signal.listening"


def write_results(folder: Path) -> Values:
    """Write sensitivity.json of a gathered run folder; return its content."""
    records = Records(folder)
    points = [point_results(axes, records.at(axes)) for axes in records.points]
    found: Values = {
        "source": " + ".join(sorted({point["source"] for point in points})) or "n/a",
        "prefix_caching": of_points(points),
        "grids": records.study["grids"],
        "quantities": records.study["quantities"],
        "points": points,
    }
    found = jsonable(found)
    write_json(found, folder / RESULTS)
    return found


def point_results(axes: Mapping[str, Any], run: Run) -> Values:
    """Return the quantities of every arm at one point."""
    measured = summary(run)["arms"]
    return {
        "axes": dict(axes),
        "source": run.source,
        "prefix_caching": found_in(run.episodes),
        "invalid_reasons": run.invalid_reasons,
        "repeats": int(run.requests["repeat"].nunique()),
        "arms": [
            row(arm, measured[arm])
            | {"level_spread": level_spread(run, arm)}
            | of_listeners(axes, run, arm)
            for arm in run.arms
        ],
    }


def level_spread(run: Run, arm: str) -> float | None:
    """Return the mean, over the repeats, of the level's standard deviation under congestion."""
    ticks = run.timeline
    rows = ticks[(ticks["arm"] == arm) & (ticks["phase"] == CONGESTED)].dropna(subset=["level"])
    spreads = rows.groupby("repeat")["level"].std()
    return float(spreads.mean()) if len(spreads) and np.isfinite(spreads).all() else None


def of_listeners(axes: Mapping[str, Any], run: Run, arm: str) -> Values:
    """Return what those who listen and the others got, over the complete repeats."""
    share = axes.get(LISTENING, run.config["signal"].get("listening", 1.0))
    rows = run.requests[run.requests["arm"] == arm]
    rows = rows[rows["repeat"].isin(run.complete_repeats(arm))]
    slo = build_class(Slo, run.config.get("slo") or {}, "slo")
    return dict(of_classes(rows, float(share), int(run.config["seed"]), slo))

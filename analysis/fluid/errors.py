"""The fluid's queue beside the simulated one, and how far it is off."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.frames import Run
from analysis.plan import read_plan
from analysis.prefix_caching import found_in

Values = dict[str, Any]
FLUID = "FluidCell"


def results(folder: Path, run: Run) -> Values:
    """Return both curves of every arm, and the errors of each phase."""
    predicted = {
        content["arm"]: pd.DataFrame(content["points"])
        for cell in read_plan(folder)
        if cell.kind == FLUID and (content := cell.content) is not None
    }
    arms = [compare(run, arm, predicted[arm]) for arm in run.arms if arm in predicted]
    phases = [{"name": p.name, "start_s": p.start_s, "end_s": p.end_s} for p in run.phases]
    repeats = int(run.requests["repeat"].nunique())
    return {
        "source": run.source,
        "prefix_caching": found_in(run.episodes),
        "repeats": repeats,
        "phases": phases,
        "arms": arms,
    }


def compare(run: Run, arm: str, fluid: pd.DataFrame) -> Values:
    """Return one arm's curves, the simulated one over its repeats, and the errors."""
    ticks = run.timeline[run.timeline["arm"] == arm]
    outstanding = (ticks["running"] + ticks["waiting"]).astype(np.float64)
    by_time = ticks.assign(outstanding=outstanding).groupby(ticks["time_s"].round(3))
    simulated = by_time["outstanding"].agg(["mean", "min", "max", "count"])
    # After the first repeat has ended the others alone would be no mean of all.
    simulated = simulated[simulated["count"] == ticks["repeat"].nunique()]
    times_s = simulated.index.to_numpy(dtype=np.float64)
    inside = times_s <= float(fluid["time_s"].max())
    simulated, times_s = simulated[inside], times_s[inside]
    at = np.interp(times_s, fluid["time_s"], fluid["outstanding"])
    level = np.interp(times_s, fluid["time_s"], fluid["level"])
    mean = simulated["mean"].to_numpy(dtype=np.float64)
    seen = by_time["level"].mean().reindex(simulated.index).to_numpy(dtype=np.float64)
    return {
        "arm": arm,
        "time_s": times_s.tolist(),
        "simulated": mean.tolist(),
        "lowest": simulated["min"].tolist(),
        "highest": simulated["max"].tolist(),
        "fluid": at.tolist(),
        "level": seen.tolist(),
        "fluid_level": level.tolist(),
        "errors": {
            phase.name: error(mean, at, (times_s >= phase.start_s) & (times_s < phase.end_s))
            for phase in run.phases
        },
    }


def error(simulated: Any, fluid: Any, chosen: Any) -> Values:
    """Return means, largest values, and the mean absolute error by the simulated mean."""
    if not chosen.any():
        return dict.fromkeys(("simulated_mean", "fluid_mean", "largest", "fluid_largest", "error"))
    own, other = simulated[chosen], fluid[chosen]
    mean = float(own.mean())
    return {
        "simulated_mean": mean,
        "fluid_mean": float(other.mean()),
        "largest": float(own.max()),
        "fluid_largest": float(other.max()),
        "error": float(np.abs(other - own).mean()) / mean if mean > 0 else None,
    }

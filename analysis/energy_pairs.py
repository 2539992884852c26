"""The joules of one window in both arms, over the repeats that have them."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.congested_phase import PairedArms
from analysis.frames import Run, energy_doubts
from analysis.statistics import Array


@dataclass(frozen=True)
class EnergyPairs:
    """One energy window of both arms, over the repeats that have it in both."""

    source: str
    repeats: list[int]
    baseline_j: Array
    treatment_j: Array
    doubts: list[str]
    """Why to distrust these joules."""
    engines: list[str]
    """Of an arm with several engines, that its joules are those of all."""


def pair_energy(run: Run, pairs: PairedArms, window: str) -> EnergyPairs | str:
    """Return the joules of both arms, or why there are none."""
    rows = run.energy[run.energy["window"] == window]
    joules = rows.pivot_table(index="repeat", columns="arm", values="energy_j", observed=True)
    arms = [pairs.baseline, pairs.treatment]
    if not all(arm in joules for arm in arms):
        reasons = [str(reason) for reason in rows["reason"].dropna().unique()]
        return "; ".join(reasons) or "no energy was recorded"
    joules = joules[joules.index.isin(pairs.repeats)]
    base, treated = joules[pairs.baseline], joules[pairs.treatment]
    both = base.notna() & treated.notna()
    if not both.any():
        return "no repeat has the energy of both arms"
    repeats = [int(repeat) for repeat in joules.index[both].to_numpy()]
    used = rows[rows["repeat"].isin(repeats) & rows["arm"].isin(arms)]
    return EnergyPairs(
        _sources(used),
        repeats,
        _joules(base[both]),
        _joules(treated[both]),
        energy_doubts(used),
        _engines(used),
    )


def _joules(values: pd.Series) -> Array:
    return values.to_numpy(dtype=np.float64)


def _engines(rows: pd.DataFrame) -> list[str]:
    of_several = rows[rows["replicas_j"].notna()]
    named = dict(zip(of_several["arm"], of_several["replicas_j"], strict=True))
    return [
        f"{arm}'s joules are those of {len(parts)} engines ({', '.join(parts)}), idle ones too"
        for arm, parts in named.items()
    ]


def _sources(rows: pd.DataFrame) -> str:
    return " + ".join(sorted(set(rows["source"].dropna()))) or "n/a"

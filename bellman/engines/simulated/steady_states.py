"""Measured steady states of real servers, and the simulated engine under the same load."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from bellman.engines.simulated.profile import Profile
from bellman.engines.simulated.saturated import (
    SaturatedRun,
    gamma_lengths,
    lognormal_lengths,
    run_saturated,
)
from bellman.engines.simulated.segment import Limits
from bellman.errors import RunError

MEASURED = Path(__file__).parent / "measured" / "mlenergy_v3_h100.csv"
"""The steady states that the profiles were fitted and judged on."""
METRICS = (
    "itl_median_ms",
    "itl_p90_ms",
    "itl_p99_ms",
    "output_tokens_per_s",
    "watts",
    "joules_per_token",
)
COLUMNS = {
    "model_id": "model",
    "task": "task",
    "num_gpus": "gpus",
    "max_num_seqs": "max_num_seqs",
    "avg_output_len": "output_tokens",
    "avg_batch_size": "batch",
    "avg_power_watts": "watts",
    "energy_per_token_j": "joules_per_token",
    "median_itl_ms": "itl_median_ms",
    "output_tps": "output_tokens_per_s",
}
OPTIONAL = {"p90_itl_ms": "itl_p90_ms", "p99_itl_ms": "itl_p99_ms"}
NAMES = ("model_id", "task")
"""Columns of text, whatever it looks like."""
SMALL_BATCH = 128
"""Largest batch limit of the small ones, where rows are split by size."""


@dataclass(frozen=True)
class SteadyState:
    """One row of the ML.ENERGY form."""

    model: str
    task: str
    gpus: int
    max_num_seqs: int
    requests: int
    output_tokens: float
    """Mean."""
    batch: float
    watts: float
    joules_per_token: float
    itl_median_ms: float
    output_tokens_per_s: float
    itl_p90_ms: float | None = None
    """None where the file does not say it."""
    itl_p99_ms: float | None = None


@dataclass(frozen=True)
class Lengths:
    """What is not published of the measured requests, assumed."""

    prompt_tokens: Mapping[str, float]
    """Mean by task."""
    prompt_variation: float = 1.0
    """Standard deviation / mean, of lognormal lengths."""
    output_variation: float = 0.6
    """The same of gamma-distributed ones."""


def read_steady_states(
    path: Path, model: str | None = None, gpus: int | None = None
) -> list[SteadyState]:
    """Read the rows; of one model, by its whole name, on one number of cards where these are given.

    `num_requests` is 4 batches where it is missing. Raises `RunError` for a file without the
    columns, and where no row is left.
    """
    numbers = [*COLUMNS, *OPTIONAL, "num_requests"]
    table = pd.read_csv(
        path,
        comment="#",
        dtype=dict.fromkeys(NAMES, str),
        keep_default_na=False,  # a model may be called NA
        na_values={name: ["", "NA", "nan"] for name in numbers if name not in NAMES},
    )
    missing = sorted(set(COLUMNS) - set(table.columns))
    if missing:
        raise RunError(f"{path} lacks the columns {', '.join(missing)}: see {MEASURED.name}")
    models = sorted(set(table["model_id"]))
    if model is not None:
        table = table[table["model_id"] == model]
        if table.empty:
            raise RunError(f"{path} has no row of model {model!r}: it has {', '.join(models)}")
    if gpus is not None:
        known = ", ".join(map(str, sorted(set(table["num_gpus"]))))
        table = table[table["num_gpus"] == gpus]
        if table.empty:
            raise RunError(f"{path} has no row of {model} on {gpus} cards: it has {known}")
    requests = table.get("num_requests", (4 * table["max_num_seqs"]).clip(lower=1024))
    names = COLUMNS | {name: ours for name, ours in OPTIONAL.items() if name in table.columns}
    table = table.rename(columns=names)[list(names.values())].assign(requests=requests)
    rows = [row_of(cells) for cells in table.to_dict("records")]
    return sorted(rows, key=lambda row: (row.model, row.gpus, row.task, row.max_num_seqs))


def row_of(cells: Mapping[Hashable, Any]) -> SteadyState:
    """Return a row; cells of optional columns may be empty."""
    values = {str(name): value for name, value in cells.items()}
    for name in OPTIONAL.values():
        if pd.isna(values.get(name)):
            values[name] = None
    return SteadyState(**values)


Split = tuple[list[SteadyState], list[SteadyState]]
"""Rows to fit on, and rows to judge on."""


def halves(rows: list[SteadyState]) -> Split:
    """Split the rows of each model, number of cards and task into every other one."""
    groups: dict[tuple[str, int, str], list[SteadyState]] = {}
    for row in rows:
        groups.setdefault((row.model, row.gpus, row.task), []).append(row)
    fitted = [row for group in groups.values() for row in group[::2]]
    judged = [row for group in groups.values() for row in group[1::2]]
    return fitted, judged


def swapped(rows: list[SteadyState]) -> Split:
    """Return the halves, to fit on those that `halves` judges on."""
    fitted, judged = halves(rows)
    return judged, fitted


def small_to_large(rows: list[SteadyState]) -> Split:
    """Split by the batch limit, to fit on small batches."""
    small = [row for row in rows if row.max_num_seqs <= SMALL_BATCH]
    return small, [row for row in rows if row.max_num_seqs > SMALL_BATCH]


def large_to_small(rows: list[SteadyState]) -> Split:
    """Split by the batch limit, to fit on large batches."""
    small, large = small_to_large(rows)
    return large, small


SPLITS: Mapping[str, Callable[[list[SteadyState]], Split]] = {
    "swapped": swapped,
    "small_to_large": small_to_large,
    "large_to_small": large_to_small,
}
"""Besides `halves`, by which the profiles of the package were fitted."""


def simulate(
    profile: Profile, kv_blocks: int, row: SteadyState, lengths: Lengths, seed: int = 0
) -> SaturatedRun:
    """Put the row's load through the simulated engine, by the protocol it was measured with."""
    prompts = lognormal_lengths(
        lengths.prompt_tokens[row.task], lengths.prompt_variation, row.requests, seed
    )
    outputs = gamma_lengths(row.output_tokens, lengths.output_variation, row.requests, seed + 1)
    limits = Limits(row.max_num_seqs, 8192, kv_blocks, 16)
    return run_saturated(profile, limits, prompts.tolist(), outputs.tolist(), stalls=profile.stalls)


def with_prompts(lengths: Lengths, factor: float) -> Lengths:
    """Return the lengths with all mean prompts times `factor`."""
    prompts = {task: factor * tokens for task, tokens in lengths.prompt_tokens.items()}
    return replace(lengths, prompt_tokens=prompts)

"""Measured steady states of real servers, and the simulated engine under the same load."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from bellman.engines.simulated.performance import Performance
from bellman.engines.simulated.saturated import SaturatedRun, drawn_lengths, run_saturated
from bellman.engines.simulated.segment import Limits
from bellman.errors import RunError

MEASURED = Path(__file__).parent / "measured" / "mlenergy_v3_h100.csv"
"""The steady states that the profiles were fitted and judged on."""
METRICS = ("itl_median_ms", "output_tokens_per_s", "watts", "joules_per_token")
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


@dataclass(frozen=True)
class Lengths:
    """What is not published of the measured requests, assumed."""

    prompt_tokens: Mapping[str, float]
    """Mean by task."""
    prompt_variation: float = 1.0
    """Standard deviation / mean."""
    output_variation: float = 0.6


def read_steady_states(path: Path, model: str = "") -> list[SteadyState]:
    """Read rows whose model contains `model`; `num_requests` is 4 batches where it is missing."""
    table = pd.read_csv(path, comment="#")
    missing = sorted(set(COLUMNS) - set(table.columns))
    if missing:
        raise RunError(f"{path} lacks the columns {', '.join(missing)}: see {MEASURED.name}")
    table = table[table["model_id"].str.contains(model, regex=False)]
    if table.empty:
        raise RunError(f"{path} has no row of a model whose name contains {model!r}")
    requests = table.get("num_requests", (4 * table["max_num_seqs"]).clip(lower=1024))
    table = table.rename(columns=COLUMNS)[list(COLUMNS.values())].assign(requests=requests)
    rows = [SteadyState(**{str(k): v for k, v in row.items()}) for row in table.to_dict("records")]
    return sorted(rows, key=lambda row: (row.model, row.gpus, row.task, row.max_num_seqs))


def halves(rows: list[SteadyState]) -> tuple[list[SteadyState], list[SteadyState]]:
    """Split each model's and task's rows into every other one: to fit on, and to judge on."""
    groups: dict[tuple[str, str], list[SteadyState]] = {}
    for row in rows:
        groups.setdefault((row.model, row.task), []).append(row)
    fitted = [row for group in groups.values() for row in group[::2]]
    judged = [row for group in groups.values() for row in group[1::2]]
    return fitted, judged


def simulate(
    performance: Performance, kv_blocks: int, row: SteadyState, lengths: Lengths, seed: int = 0
) -> SaturatedRun:
    """Put the row's load through the simulated engine, by the protocol it was measured with."""
    prompts = drawn_lengths(
        lengths.prompt_tokens[row.task], lengths.prompt_variation, row.requests, seed
    )
    outputs = drawn_lengths(row.output_tokens, lengths.output_variation, row.requests, seed + 1)
    limits = Limits(row.max_num_seqs, 8192, kv_blocks, 16)
    return run_saturated(performance, limits, prompts.tolist(), outputs.tolist())


def with_prompts(lengths: Lengths, factor: float) -> Lengths:
    """Return the lengths with all mean prompts times `factor`."""
    prompts = {task: factor * tokens for task, tokens in lengths.prompt_tokens.items()}
    return replace(lengths, prompt_tokens=prompts)

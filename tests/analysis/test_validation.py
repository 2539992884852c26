"""Errors against measured steady states: what nobody measured is n/a, what misses is shown."""

import io
import math
from pathlib import Path

import pandas as pd
from rich.console import Console

from analysis.validation.errors import METRICS, STEADY_STATES, load
from analysis.validation.present import results, rows_table, summary_table


def records(split: str, role: str, error: float, p99_ms: float | None) -> dict[str, object]:
    row: dict[str, object] = {
        "profile": "p",
        "model": "m",
        "task": "chat",
        "max_num_seqs": 8,
        "prompt_factor": 1.0,
        "role": role,
        "split": split,
    }
    for metric in METRICS:
        row |= {f"{metric}_measured": 100.0, f"{metric}_simulated": 100.0 * (1 + error)}
    return row | {"itl_p99_ms_measured": p99_ms}


def write(folder: Path, rows: list[dict[str, object]]) -> pd.DataFrame:
    pd.DataFrame(rows).to_parquet(folder / STEADY_STATES)
    return load(folder)


def test_a_metric_that_no_row_has_is_not_available(tmp_path: Path) -> None:
    frame = write(tmp_path, [records("as it is", "judged", 0.02, None)])
    found = {str(result["metric"]): result for result in results(frame)}
    assert math.isnan(float(str(found["itl_p99_ms"]["largest"])))
    assert found["itl_p99_ms"]["targets"] == "n/a"
    assert found["itl_median_ms"]["targets"] == "met (5%, 10%)"
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(rows_table(frame))
    assert "n/a n/a" in console.export_text()


def test_a_miss_is_shown_as_one_in_every_split_and_fitted_rows_of_refits_are_not_judged(
    tmp_path: Path,
) -> None:
    frame = write(
        tmp_path,
        [
            records("as it is", "judged", 0.01, 100.0),
            records("small_to_large", "fitted", 0.0, 100.0),
            records("small_to_large", "judged", -0.25, 100.0),
        ],
    )
    found = [result for result in results(frame) if result["split"] == "small_to_large"]
    assert {result["role"] for result in found} == {"judged"}
    by_metric = {result["metric"]: result["targets"] for result in found}
    assert by_metric["output_tokens_per_s"] == "missed (5%, 10%)"
    assert by_metric["itl_p99_ms"] == "missed (10%, 20%)"
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(summary_table(found, "small_to_large"))
    shown = console.export_text()
    assert "fitted again on batch limits up to 128" in " ".join(shown.split())
    assert "missed" in shown

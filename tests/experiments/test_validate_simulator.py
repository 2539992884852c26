"""The validation experiment, from the command line to its tables and figures."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
ROWS = """model_id,task,num_gpus,max_num_seqs,avg_output_len,avg_batch_size,avg_power_watts,\
energy_per_token_j,median_itl_ms,output_tps
meta-llama/Llama-3.1-8B-Instruct,lm-arena-chat,1,16,404.2,16.0,513.3,0.26274,7.912,1953.6
somebody/Other-1B,lm-arena-chat,1,16,404.2,16.0,513.3,0.26274,7.912,1953.6
"""


def run(tmp_path: Path, *overrides: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "run.py", "experiment=validate_simulator", f"outputs={tmp_path}"]
    return subprocess.run(
        [*command, *overrides], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_rows_of_other_files_are_judged_and_shown(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text(ROWS)
    done = run(
        tmp_path,
        "study.profiles=[llama_8b_h100]",
        f"study.rows={rows}",
        "study.prompt_factors=[1.0]",
    )
    assert done.returncode == 0, done.stderr
    assert "somebody/Other-1B" in done.stdout
    folder = next((tmp_path / "validate_simulator").iterdir())
    results = json.loads((folder / "validation.json").read_text())
    assert {result["role"] for result in results} == {"judged"}
    assert {result["targets"] for result in results} == {"met", "n/a"}
    assert (folder / "figures" / "validation_errors.pdf").exists()


@pytest.mark.slow
def test_a_row_that_changed_is_simulated_again_and_no_other(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    more = ROWS + ROWS.splitlines()[1].replace(",1,16,", ",1,32,") + "\n"
    overrides = (
        "study.profiles=[llama_8b_h100]",
        f"study.rows={rows}",
        f"folder={tmp_path / 'run'}",
    )
    made = []
    for text in (more, more, more.replace(",32,404.2,", ",32,444.2,")):
        rows.write_text(text)
        done = run(tmp_path, "study.prompt_factors=[1.0]", *overrides)
        assert done.returncode == 0, done.stderr
        files = (tmp_path / "run" / "episodes").glob("*/episode.json")
        made.append({file.parent.name: file.stat().st_mtime_ns for file in files})
    first, again, changed = made
    assert len(first) == 2
    assert again == first
    assert len(changed) == 3  # the row as it was keeps its records
    assert changed.items() >= first.items()
    assert len(pd.read_parquet(tmp_path / "run" / "steady_states.parquet")) == 2


def test_rows_that_fit_no_profile_are_refused(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("\n".join([ROWS.splitlines()[0], ROWS.splitlines()[2]]) + "\n")
    done = run(tmp_path, f"study.rows={rows}")
    assert done.returncode == 1
    assert "no row of" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_mistake_is_one_line(tmp_path: Path) -> None:
    done = run(tmp_path, "study.profiles=[gpt]")
    assert done.returncode == 2
    assert "study.profiles=gpt: known are llama_70b_4xh100" in done.stderr
    assert len(done.stderr.splitlines()) == 1

"""The validation experiment, from the command line to its tables and figures."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from bellman.engines.simulated.steady_states import (
    MEASURED,
    SPLITS,
    Lengths,
    SteadyState,
    simulate,
)
from bellman.settings import read_settings
from experiments.cells.refit import RefitCell
from experiments.parts import Parts
from experiments.studies.validation import PROFILES, Validation, read_profile
from tests.engines.simulated.test_fitting import shipped
from tests.experiments.conftest import read_config

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
    assert {result["split"] for result in results} == {"as it is"}
    by_metric = {result["metric"]: result["targets"] for result in results}
    assert by_metric["itl_median_ms"] == "met (5%, 10%)"
    assert by_metric["itl_p99_ms"] == "n/a"  # the file does not say it
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


@pytest.mark.slow
def test_a_profile_from_elsewhere_is_judged_on_rows_that_call_its_model_otherwise(
    tmp_path: Path,
) -> None:
    profile = tmp_path / "mine.yaml"
    profile.write_text((PROFILES / "llama_8b_h100.yaml").read_text())
    rows = tmp_path / "rows.csv"
    rows.write_text(ROWS)
    done = run(
        tmp_path,
        f"study.profiles=[{profile}]",
        "+study.models.mine=somebody/Other-1B",
        f"study.rows={rows}",
        "study.prompt_factors=[1.0]",
    )
    assert done.returncode == 0, done.stderr
    folder = next((tmp_path / "validate_simulator").iterdir())
    frame = pd.read_parquet(folder / "steady_states.parquet")
    assert set(frame["profile"]) == {"mine"}
    assert set(frame["model"]) == {"somebody/Other-1B"}


def config(*overrides: str) -> Validation:
    study = read_settings(read_config("experiment=validate_simulator", *overrides)).study
    assert isinstance(study, Validation)
    return study


def test_profiles_of_one_tokenizer_are_fitted_again_together_on_every_split() -> None:
    cells = config().refit_cells()
    families = {tuple(cell.profiles) for cell in cells}
    assert families == {("llama_8b_h100", "llama_70b_4xh100"), ("qwen3_8b_h100",)}
    assert len(cells) == 2 * len(SPLITS)
    assert config("study.splits=[]").refit_cells() == []


def test_rows_of_a_file_that_no_profile_was_fitted_on_are_all_judged(tmp_path: Path) -> None:
    copy = tmp_path / "rows.csv"
    copy.write_text(MEASURED.read_text())
    assert {cell.role for cell in config(f"study.rows={copy}").row_cells()} == {"fitted", "judged"}
    copy.write_text(MEASURED.read_text() + "# another file\n")
    study = config(f"study.rows={copy}")
    assert {cell.role for cell in study.row_cells()} == {"judged"}
    assert study.refit_cells() == []


def test_prompts_are_those_that_the_profile_was_fitted_with_unless_they_are_given() -> None:
    own = config().row_cells()[0]
    assert own.prompt_tokens == shipped("llama_8b_h100").fitted.prompt_tokens["lm-arena-chat"]
    given = config("+study.prompt_tokens.lm-arena-chat=777").row_cells()[0]
    assert given.prompt_tokens == 777


class Quiet:
    def begin(self, description: str, duration_s: float | None) -> None:
        """Nobody looks on."""

    def finish(self, end_s: float | None) -> None:
        """Nobody looks on."""


def test_a_fit_on_one_part_of_the_rows_is_judged_on_the_rest() -> None:
    """Rows that the profile itself made: every split must find them again."""
    profile = shipped("llama_8b_h100")
    lengths = Lengths(profile.fitted.prompt_tokens, profile.fitted.prompt_variation)
    rows = []
    for batch in (16, 64, 128, 192):
        row = SteadyState("m", "lm-arena-chat", 1, batch, 256, 150.0, batch, 0, 0, 0, 0)
        found = simulate(profile, profile.kv_blocks, row, lengths)
        rows.append(
            replace(
                row,
                watts=found.watts,
                joules_per_token=found.joules_per_token,
                itl_median_ms=found.itl_median_ms,
                output_tokens_per_s=found.output_tokens_per_s,
            )
        )
    node = read_profile("llama_8b_h100")
    cell = RefitCell({"p": node}, {"p": tuple(rows)}, "small_to_large", ())
    records = cell.run(Path(), Parts(), Quiet())["records"]
    assert [record["role"] for record in records] == ["fitted", "fitted", "fitted", "judged"]
    judged = records[-1]
    assert judged["itl_p99_ms_measured"] is None
    for metric in ("itl_median_ms", "output_tokens_per_s", "watts"):
        expected = judged[f"{metric}_measured"]
        assert judged[f"{metric}_simulated"] == pytest.approx(expected, rel=0.06), metric


@pytest.mark.slow
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

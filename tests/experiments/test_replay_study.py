"""The replay whole, with a server of known speed in virtual time: its twin must find the same."""

import json
import shutil

import pandas as pd
import pytest
from rich.console import Console

from analysis.frames import load_run
from analysis.plan import read_plan
from analysis.present import present
from bellman.errors import RunError
from bellman.responses.recorded import read_recorded
from experiments.execute import execute
from experiments.parts import Parts
from tests.experiments.conftest import read_config

pytestmark = pytest.mark.slow

SMALL = (
    "study=replay",
    "name=replay",
    "engine._target_=tests.experiments.stand_in.StandIn",
    "engine/bank=extractive",
    "engine.max_num_seqs=8",
    "engine.max_num_batched_tokens=2048",
    "engine.max_model_len=16384",
    "study.max_num_seqs=8",
    "study.max_num_batched_tokens=2048",
    "study.max_model_len=16384",
    "study.batch_requests=[1,4,8]",
    "study.prompt_words=[20,400]",
    "study.output_tokens=40",
    "study.mixed_requests=16",
    "study.rounds=1",
    "capacity.concurrency=16",
    "capacity.warmup_s=20",
    "capacity.duration_s=40",
    "congestion.q_low=4",
    "congestion.q_high=24",
    "repeats=1",
    "arrivals.overload=1.3",
    "arrivals.warmup_s=5",
    "arrivals.calm_s=10",
    "arrivals.congested_s=60",
    "arrivals.recovery_s=10",
    "corpus.limit_documents=4",
    "corpus.longest_words=400",
)
KINDS = ["BatchesCell", "AnswersCell", "CapacityCell", "EpisodeCell", "EpisodeCell"]
KINDS += ["BatchesCell", "FitCell", "EpisodeCell", "EpisodeCell"]


def run(*overrides):
    return execute(read_config(*SMALL, *overrides), Console(quiet=True), draw=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return run(f"folder={tmp_path_factory.mktemp('replay') / 'run'}")


def test_the_cells_are_measured_then_fitted_then_simulated(folder):
    cells = read_plan(folder)
    assert [cell.kind for cell in cells] == KINDS
    sides = [cell.axes["engine"] for cell in cells]
    assert sides == ["measured"] * 6 + ["simulated"] * 3
    assert [cell.content["source"] for cell in cells] == sides


def test_the_twin_of_a_known_server_finds_its_latencies(folder):
    found = json.loads((folder / "validation.json").read_text())
    errors = {(row["arm"], row["metric"]): row["error"] for row in found}
    for arm in ("none", "bellman"):
        assert errors[arm, "completed"] == pytest.approx(0.0, abs=0.05)
        assert errors[arm, "e2e mean"] == pytest.approx(0.0, abs=0.15)


def test_the_results_say_whether_each_side_cached_prefixes(folder):
    console = Console(record=True, width=120)
    present(folder, console, make=False)
    assert console.export_text().startswith(
        "measured: prefix caching off\nsimulated: prefix caching off\n"
    )
    found = json.loads((folder / "validation.json").read_text())
    both = {"measured": "off", "simulated": "off"}
    assert all(row["prefix_caching"] == both for row in found)


def test_both_sides_serve_the_same_schedule_with_the_same_prompts(folder):
    measured, simulated = (load_run(folder, {"engine": side}) for side in ("measured", "simulated"))
    assert measured.source == "measured"
    assert simulated.source == "simulated"
    assert simulated.response_source == "recorded from stand-in"
    names = ["arm", "request_id", "document_id", "intended_s"]
    one, other = (
        side.requests[names].sort_values(["arm", "request_id"]).reset_index(drop=True)
        for side in (measured, simulated)
    )
    pd.testing.assert_frame_equal(one, other)
    bank, _ = read_recorded(next(folder.glob("episodes/*/bank.parquet")))
    counted = {
        (row["document_id"], row["asked_words"]): row["prompt_tokens"] for row in bank.to_pylist()
    }
    rows = simulated.requests[["document_id", "asked_words", "prompt_tokens"]].to_dict("records")
    assert all(
        row["prompt_tokens"] == counted[row["document_id"], row["asked_words"]] for row in rows
    )


@pytest.mark.parametrize("done", [1, 6, 8])
def test_a_replay_that_was_cut_goes_on_to_the_same_frames(folder, done):
    """The key of the simulated episodes has the bank's path, so that the folder is the same one."""
    whole = folder.with_name("whole")
    shutil.copytree(folder, whole)
    try:
        for cell in read_plan(folder)[done:]:
            (cell.folder / "episode.json").unlink()
        present(folder, Console(quiet=True), draw=False)  # what there is, without an error
        assert run(f"folder={folder}") == folder
        for name in ("requests", "timeline", "texts"):
            again, before = ((at / f"{name}.parquet").read_bytes() for at in (folder, whole))
            assert again == before
        assert (folder / "validation.json").read_text() == (whole / "validation.json").read_text()
    finally:
        shutil.rmtree(folder)
        whole.rename(folder)


def test_a_step_that_fails_is_named_and_nothing_is_simulated(tmp_path):
    with pytest.raises(RunError, match=r"batches before: .*exceed the model's 600"):
        run(
            f"folder={tmp_path / 'run'}", "engine.max_model_len=600", "study.prompt_words=[20,4000]"
        )
    assert [cell.kind for cell in read_plan(tmp_path / "run")] == ["BatchesCell"]


class Server:
    """An engine in real time that notes when it is started and ended."""

    loop_factory = None

    def __init__(self, notes, name):
        self.notes = notes
        self.name = name

    async def __aenter__(self):
        self.notes.append(f"{self.name} starts")
        return self

    async def __aexit__(self, *exc):
        self.notes.append(f"{self.name} ends")


def test_an_engine_has_ended_before_another_one_runs():
    notes = []
    one, other = Server(notes, "one"), Server(notes, "other")

    async def note(text):
        notes.append(text)

    with Parts() as parts:
        for engine in (one, one, other):
            parts.run_coroutine(engine)(note(f"{engine.name} runs"))
    assert notes == [
        *("one starts", "one runs", "one runs", "one ends"),
        *("other starts", "other runs", "other ends"),
    ]

"""Cells in processes of their own: the same records, and nothing lost when a process is."""

import os
import pickle
import signal
from io import StringIO

import psutil
import pytest
from rich.console import Console

from bellman.errors import ConfigError
from experiments.execute import prepare
from experiments.executors.processes import Processes
from experiments.perform import planned
from tests.executors.cells import Stub
from tests.executors.conftest import (
    assert_same_files,
    place,
    read_config,
    run,
    wait_until_ended,
    workers,
)
from tests.experiments.conftest import TINY


def results(hands, *cells):
    """Run cells and return their outcomes by label."""
    outcomes = {}
    hands.run(
        [planned(cell) for cell in cells],
        lambda outcome: outcomes.setdefault(outcome.planned.cell.label, outcome),
    )
    return outcomes


@pytest.mark.slow
def test_a_run_has_the_same_files_as_a_serial_one(tmp_path):
    tiny = (*TINY, "repeats=2")
    folder = run(tmp_path / "run", *tiny, "executor=processes", "executor.workers=2")
    assert_same_files(folder, run(tmp_path / "serial", *tiny))
    wait_until_ended(workers())


def test_the_processes_live_as_long_as_the_study_and_load_their_parts_once(tmp_path):
    with Processes(workers=2).at(place(tmp_path)) as hands:
        first = results(hands, *[Stub(f"a{number}") for number in range(6)])
        loaded = {(one.content["process"], one.content["loaded"]) for one in first.values()}
        assert os.getpid() not in {process for process, _ in loaded}
        assert len(loaded) <= 2
        for number in range(3):  # small batches, as of a study that searches
            (outcome,) = results(hands, Stub(f"b{number}")).values()
            assert (outcome.content["process"], outcome.content["loaded"]) in loaded


def test_a_process_uses_one_thread(tmp_path):
    with Processes(workers=1).at(place(tmp_path)) as hands:
        assert results(hands, Stub("a"))["a"].content["threads"] == ["1", 1]


@pytest.mark.slow
def test_a_killed_process_costs_a_second_try_and_then_its_cell_alone(tmp_path):
    cells = [Stub(f"fine{number}") for number in range(4)]
    once, always = Stub("once", "killed once", str(tmp_path)), Stub("always", "killed")
    folder = tmp_path / "run"
    with Processes(workers=2).at(place(folder)) as hands:
        outcomes = results(hands, always, once, *cells)
    assert {label for label, one in outcomes.items() if one.content is None} == {"always"}
    assert "killed, twice (out of memory?)" in outcomes["always"].error
    for label in ("once", "fine0", "fine1", "fine2", "fine3"):
        assert (outcomes[label].folder / "episode.json").exists()
    assert not (outcomes["always"].folder / "episode.json").exists()


@pytest.mark.slow
def test_a_process_killed_while_it_has_nothing_to_do_costs_nothing(tmp_path):
    with Processes(workers=1).at(place(tmp_path)) as hands:
        process = psutil.Process(results(hands, Stub("a"))["a"].content["process"])
        for number in range(3):
            process.kill()
            wait_until_ended([process])
            outcome = results(hands, Stub(f"b{number}"))[f"b{number}"]
            assert outcome.error is None
            process = psutil.Process(outcome.content["process"])


def test_a_cell_that_fails_is_named_and_the_others_go_on(tmp_path):
    failing = [Stub(name, name) for name in ("RunError", "ConfigError", "ZeroDivisionError")]
    with Processes(workers=2).at(place(tmp_path)) as hands:
        outcomes = results(hands, *failing, Stub("fine"))
    assert outcomes["fine"].error is None
    assert outcomes["RunError"].error == "the engine is not there"
    assert outcomes["ConfigError"].error == "q_low=7: must be less than q_high"
    unexpected = outcomes["ZeroDivisionError"]
    assert "division by zero" in unexpected.error
    assert "Traceback" in (unexpected.folder / "error.txt").read_text()


@pytest.mark.slow
def test_a_full_disk_ends_them_all(tmp_path):
    cells = [Stub("long", "waits"), Stub("full", "full disk"), Stub("later")]
    with (
        pytest.raises(OSError, match="No space left"),
        Processes(workers=2).at(place(tmp_path)) as hands,
    ):
        results(hands, *cells)
    wait_until_ended(workers())


def test_an_interruption_ends_every_process_and_keeps_what_was_finished(tmp_path):
    ran = []

    def interrupt(outcome):
        ran.append(outcome)
        signal.raise_signal(signal.SIGINT)

    plans = [planned(cell) for cell in (Stub("short"), Stub("long", "waits"))]
    with pytest.raises(KeyboardInterrupt), Processes(workers=2).at(place(tmp_path)) as hands:
        hands.run(plans, interrupt)
    (outcome,) = ran
    assert (outcome.folder / "episode.json").exists()
    wait_until_ended(workers())


def test_progress_tells_each_cell_with_the_time_of_day(tmp_path):
    text = StringIO()
    console = Console(file=text, width=200)
    with Processes(workers=1).at(place(tmp_path, console)) as hands:
        results(hands, Stub("good"), Stub("bad [arm=x]", "RunError"))
    lines = text.getvalue().splitlines()
    assert lines[0][2] == lines[0][5] == ":"
    assert lines[0][9:] == "1/2 good (simulated)"
    assert lines[1] == "good was here"
    assert lines[2][9:] == "2/2 bad [arm=x] (simulated) failed: the engine is not there"


@pytest.mark.parametrize("executor", ["processes", "ray"])
def test_several_at_once_are_refused_for_a_real_engine(executor):
    if executor == "ray":
        pytest.importorskip("ray")
    config = read_config(
        f"executor={executor}", "engine=openai", "engine.base_url=http://127.0.0.1:1"
    )
    with pytest.raises(ConfigError, match="must be serial for a real engine"):
        prepare(config)


def test_fewer_than_one_worker_is_refused():
    with pytest.raises(ConfigError, match=r"executor.workers=0: must be 1 or more"):
        prepare(read_config("executor=processes", "executor.workers=0"))


def test_a_configuration_error_travels_between_processes():
    error = pickle.loads(pickle.dumps(ConfigError("q_low", 7, "must be less")))
    assert (str(error), error.key, error.value) == ("q_low=7: must be less", "q_low", 7)

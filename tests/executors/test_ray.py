"""Cells on a Ray cluster: the same records, whatever becomes of a node."""

import threading
import time
from pathlib import Path

import psutil
import pytest

from bellman.errors import ConfigError, RunError
from experiments.execute import prepare
from experiments.executors.away import run_away
from experiments.executors.ray import RayCluster, make_token
from experiments.perform import planned
from tests.executors import cells
from tests.executors.cells import Stub
from tests.executors.conftest import (
    assert_same_files,
    place,
    read_config,
    run,
    wait_until_ended,
    workers,
)
from tests.executors.test_processes import results

make_token()
ray = pytest.importorskip("ray")
# Where the fast tests run in continuous integration there is no Ray.
pytestmark = pytest.mark.slow


def test_another_input_file_on_a_node_fails_its_cell_in_one_line(tmp_path):
    file = tmp_path / "documents.jsonl"
    file.write_text("one")
    plan = planned(Stub(str(file)))
    delivered = run_away(plan, {str(file): "as it was elsewhere"}, "/nowhere", "run")
    assert delivered.content is None
    assert delivered.files == {}
    assert delivered.error.startswith(f"{file} is not on node ")
    assert delivered.error.endswith("copy it there")
    assert "\n" not in delivered.error


def test_an_input_file_that_a_node_lacks_fails_its_cell(tmp_path):
    plan = planned(Stub("a"))
    delivered = run_away(plan, {"/data/trace.csv": "digest"}, "/nowhere", "run")
    assert delivered.error.startswith("/data/trace.csv is not on node ")


@pytest.mark.parametrize("address", ["ray://head:10001", "head", ""])
def test_an_address_of_another_form_is_refused(address):
    with pytest.raises(ConfigError, match="must be host:port, auto or null"):
        prepare(read_config("executor=ray", f"executor.address='{address}'"))


def test_an_address_where_nobody_answers_is_one_line(tmp_path):
    with (
        pytest.raises(RunError, match=r"executor.address=127.0.0.1:1: nobody answers there"),
        RayCluster("127.0.0.1:1").at(place(tmp_path)),
    ):
        pass


def test_a_ray_of_its_own_gives_the_files_of_a_serial_run_and_ends(serial, tmp_path, capfd):
    assert_same_files(run(tmp_path / "run", "executor=ray"), serial)
    wait_until_ended(workers())
    assert not ray.is_initialized()
    assert capfd.readouterr() == ("", "")


def test_failures_are_as_in_serial(tmp_path):
    ray.cloudpickle.register_pickle_by_value(cells)  # a node has no tests
    with RayCluster().at(place(tmp_path / "run")) as hands:
        failing = [Stub(name, name) for name in ("RunError", "ConfigError", "ZeroDivisionError")]
        once, always = Stub("once", "killed once", str(tmp_path)), Stub("always", "killed")
        outcomes = results(hands, always, *failing, once, Stub("fine"))
        with pytest.raises(RunError, match=r"node .*No space left on device"):
            results(hands, Stub("full disk", "full disk"))
    assert {label for label, one in outcomes.items() if one.error is None} == {"fine", "once"}
    assert outcomes["fine"].content["threads"] == ["1", 1]
    for label in ("fine", "once"):
        assert (outcomes[label].folder / "episode.json").exists()
        assert (outcomes[label].folder / "records.txt").read_text() == label
    assert outcomes["RunError"].error.endswith(": the engine is not there")
    assert outcomes["ConfigError"].error.endswith(": q_low=7: must be less than q_high")
    unexpected = outcomes["ZeroDivisionError"]
    assert str(unexpected.folder / "error.txt") in unexpected.error
    assert "Traceback" in (unexpected.folder / "error.txt").read_text()
    assert outcomes["always"].error.startswith("lost 4 times: ")


def test_a_node_that_is_killed_costs_nothing(serial, tmp_path):
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    try:
        # The head cannot be spared, so it does no work.
        _, *nodes = [
            cluster.add_node(num_cpus=cpus, include_dashboard=False, object_store_memory=10**8)
            for cpus in (0, 1, 1)
        ]
        started = workers()
        killed: list[bool] = []
        killer = threading.Thread(
            target=lambda: killed.append(kill_at_work(cluster, nodes, tmp_path / "run"))
        )
        killer.start()
        folder = run(tmp_path / "run", "executor=ray", f"executor.address={cluster.address}")
        killer.join()
        assert killed == [True]
        assert_same_files(folder, serial)
    finally:
        cluster.shutdown()
    wait_until_ended(started)


def kill_at_work(cluster, nodes, folder: Path) -> bool:
    """Kill a node that runs a cell once another cell is done; tell whether that came."""
    raylets = [(one, psutil.Process(one.all_processes["raylet"][0].process.pid)) for one in nodes]
    deadline_s = time.monotonic() + 120
    while time.monotonic() < deadline_s:
        done = any(folder.glob("episodes/*/episode.json"))
        for node, raylet in raylets if done else ():
            if any("run_away" in " ".join(one.cmdline()) for one in raylet.children()):
                cluster.remove_node(node, allow_graceful=False)
                return True
        time.sleep(0.01)
    return False

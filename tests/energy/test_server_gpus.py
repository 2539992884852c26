"""Which cards are metered: those of the server's processes, else those it may use, and a doubt."""

import asyncio
import os
import socket
import subprocess
from pathlib import Path

import pytest

from bellman.energy.base import LocalServer
from bellman.energy.server_process import find, in_initial_namespace, listening_on
from tests.energy.stub import BOTH, FIRST, SECOND, joules, measure

BUSY, IDLE = "NVIDIA H100,686,1,0,0,0", "NVIDIA H100,70,1,0,0,0"
EIGHT = ";".join(
    f"GPU-{card},00000000:{card}0:00.0,{BUSY if card == 5 else IDLE}" for card in range(1, 9)
)


def reasons(result) -> set[str | None]:
    return {window["reason"] for name, window in result["windows"].items() if name != "drain"}


@pytest.mark.parametrize("process", ["server", "worker", "server worker"])
def test_of_eight_cards_only_that_of_the_servers_processes_is_counted(library, process) -> None:
    result = measure(library, STUB_GPUS=EIGHT, STUB_PROCESSES=f";;;;{process}")
    assert joules(result)[-1] == pytest.approx(6860, abs=0.01)  # all eight draw 11,760 J
    assert reasons(result) == {None}
    report = result["report"]
    assert report["reason"] is None
    assert report["details"]["cards_chosen_by"] == "the server's processes on them"
    assert [gpu["uuid"] for gpu in report["details"]["gpus"]] == ["GPU-5"]


def test_a_server_on_two_cards_has_both(library: Path) -> None:
    result = measure(library, STUB_GPUS=EIGHT, STUB_PROCESSES="server;;;;worker")
    assert joules(result)[-1] == pytest.approx(7560, abs=0.01)
    assert reasons(result) == {None}


def test_a_driver_of_before_2022_lists_processes_too(library: Path) -> None:
    result = measure(library, STUB_GPUS=EIGHT, STUB_PROCESSES=";;;;worker", STUB_OLD_DRIVER="1")
    assert joules(result)[-1] == pytest.approx(6860, abs=0.01)


@pytest.mark.parametrize(
    ("environment", "watts", "said"),
    [
        ({"STUB_PROCESSES": ""}, 1176, "8 cards (all, CUDA_VISIBLE_DEVICES is not set)"),
        ({"STUB_PROCESSES": ""}, 1176, "the driver names no process of the server, "),
        ({"STUB_PROCESSES": ";;;;mine"}, 1176, "the driver names no process of the server"),
        ({"STUB_PROCESSES": ";;;;gone"}, 1176, "in a container it names those of the host"),
        (
            {"STUB_PROCESSES": "server", "STUB_FAULTS": "processes,0,0,99,4"},
            1176,
            "processes of GPU-1: Insufficient Permissions",
        ),
        # What the server was told counts, not what the run was.
        (
            {"STUB_PROCESSES": "", "STUB_SERVER_VISIBLE": "4,5", "CUDA_VISIBLE_DEVICES": "0"},
            756,
            "2 cards (CUDA_VISIBLE_DEVICES=4,5), whether the server uses them or not",
        ),
        (
            {"STUB_PROCESSES": "mine", "STUB_SERVER_VISIBLE": "4"},
            686,
            "1 card (CUDA_VISIBLE_DEVICES=4), whether the server uses them or not",
        ),
        ({}, 1176, "the server's process is not known here"),
        ({"CUDA_VISIBLE_DEVICES": "GPU-5"}, 686, "the server's process is not known here"),
    ],
)
def test_cards_that_are_not_known_to_be_the_servers_are_said_so_beside_every_window(
    library: Path, environment: dict[str, str], watts: float, said: str
) -> None:
    result = measure(library, STUB_GPUS=EIGHT, **environment)
    assert joules(result)[-1] == pytest.approx(watts * 10, abs=0.01)
    assert said in result["report"]["reason"]
    assert all(said in str(reason) for reason in reasons(result))


def test_in_a_container_the_only_card_that_the_server_sees_is_its_own(library: Path) -> None:
    result = measure(library, STUB_GPUS=EIGHT, STUB_PROCESSES=";;;;gone", STUB_SERVER_VISIBLE="4")
    assert joules(result)[-1] == pytest.approx(6860, abs=0.01)
    assert reasons(result) == {None}
    assert result["report"]["details"]["cards_chosen_by"] == "CUDA_VISIBLE_DEVICES"


def test_another_process_on_the_servers_card_is_named(library: Path) -> None:
    result = measure(library, STUB_GPUS=BOTH, STUB_PROCESSES="mine;worker mine")
    assert joules(result)[-1] == pytest.approx(1000, abs=0.01)
    (first, second) = (result["windows"][name]["reason"] for name in ("first", "second"))
    assert "another process is on GPU-aaaa1111 and its energy counted in" in first
    assert "python" in first and first == second


def test_the_servers_card_is_split(library: Path) -> None:
    split = f"{FIRST},1,0,0,0;{SECOND},1,0,0,1"
    result = measure(library, STUB_GPUS=split, STUB_PROCESSES=";worker")
    assert joules(result) == [None] * 3
    assert "GPU-aaaa1111 is split by MIG" in result["report"]["reason"]
    whole = measure(library, STUB_GPUS=split, STUB_PROCESSES="worker")
    assert joules(whole)[-1] == pytest.approx(6000, abs=0.01)


def test_a_listening_port_leads_to_the_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert os.getpid() in find(LocalServer(port=port)).process_ids
    nobody = find(LocalServer(port=port))
    assert not nobody.process_ids
    assert f"no process is seen to listen on port {port}" in str(nobody.unknown)


def test_every_process_that_shares_the_port_is_the_servers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.set_inheritable(True)
        port = server.getsockname()[1]
        worker = subprocess.Popen(["sleep", "60"], pass_fds=[server.fileno()])
        try:
            assert listening_on(port) == [os.getpid()]
            assert {os.getpid(), worker.pid} <= find(LocalServer(port=port)).process_ids
        finally:
            worker.kill()
            worker.wait()


def test_a_server_that_is_gone_is_not_known() -> None:
    async def ended() -> int:
        process = await asyncio.create_subprocess_exec("true")
        await process.wait()
        return process.pid

    gone = find(LocalServer(process_id=asyncio.run(ended())))
    assert not gone.process_ids and "the server's process" in str(gone.unknown)


@pytest.mark.parametrize(("target", "initial"), [("4026531836", True), ("4026532201", False)])
def test_a_container_has_a_namespace_of_its_own(tmp_path, target, initial) -> None:
    link = tmp_path / "pid"
    link.symlink_to(f"pid:[{target}]")
    assert in_initial_namespace(link) is initial
    assert in_initial_namespace(tmp_path / "nothing") is False

"""Signals to this process itself: noted always, raised where nothing can swallow them for good."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from bellman import interruption
from bellman.virtual_time import VirtualTimeLoop

NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def no_signals_yet(monkeypatch):
    monkeypatch.setattr(interruption, "_state", interruption._State())
    with interruption.handled():
        yield


def kill(number: int = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", NUMBERS)
def test_outside_of_a_loop_it_waits_for_the_next_check(number):
    kill(number)
    with pytest.raises(KeyboardInterrupt):
        interruption.check()


@pytest.mark.parametrize("number", NUMBERS)
def test_in_an_interruptible_part_it_comes_at_once(number):
    reached = False
    with pytest.raises(KeyboardInterrupt), interruption.interruptible():
        kill(number)
        reached = True
    assert not reached


def test_one_that_is_swallowed_comes_again(capsys):
    class Swallows:
        def __del__(self) -> None:
            kill()

    with pytest.raises(KeyboardInterrupt), interruption.interruptible():
        with suppress(KeyboardInterrupt):
            kill()
        Swallows()
    assert capsys.readouterr().err == ""
    with pytest.raises(KeyboardInterrupt), interruption.interruptible():
        pytest.fail("it begins nothing new")


def test_a_part_that_must_be_whole_is():
    done = []

    def write_all() -> None:
        with interruption.unbroken():
            done.append(1)
            kill()
            done.append(2)

    with pytest.raises(KeyboardInterrupt), interruption.interruptible():
        write_all()
    assert done == [1, 2]


def test_a_second_one_ends_what_the_first_still_allowed():
    kill()
    heeded = interruption.signals_received()
    with interruption.interruptible(heeded):
        pass
    with pytest.raises(KeyboardInterrupt), interruption.interruptible(heeded):
        kill()


@pytest.mark.parametrize("virtual", [True, False], ids=["virtual", "real"])
@pytest.mark.parametrize("where", ["callback", "task", "waiting"])
def test_in_a_loop_it_cancels_the_coroutine_which_cleans_up(virtual, where):
    ended = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        if where == "callback":
            # Where a KeyboardInterrupt is lost: raised in a done-callback, the loop only logs it.
            task = asyncio.ensure_future(asyncio.sleep(0))
            task.add_done_callback(lambda _: kill())
        elif where == "task":
            kill()
        else:
            loop.call_later(0.01, kill)
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)  # cleaning up may wait
            ended.append("in order")

    factory = VirtualTimeLoop if virtual else None
    with asyncio.Runner(loop_factory=factory) as runner:
        with pytest.raises(KeyboardInterrupt):
            interruption.run(runner, work())
        # What is to be stopped is stopped after it, by the runner itself.
        runner.run(asyncio.sleep(0))
        with pytest.raises(KeyboardInterrupt):
            interruption.run(runner, work())
    assert ended == ["in order"]


def test_whatever_the_end_is_called_on_its_way_up():
    async def work() -> None:
        kill()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise OSError("the connection is gone") from None

    with asyncio.Runner() as runner, pytest.raises(KeyboardInterrupt) as caught:
        interruption.run(runner, work())
    assert isinstance(caught.value.__cause__, OSError)


def test_a_coroutine_that_ended_by_itself_keeps_its_result():
    async def work() -> str:
        kill()
        return "result"

    with asyncio.Runner() as runner:
        assert interruption.run(runner, work()) == "result"
    with pytest.raises(KeyboardInterrupt):
        interruption.check()


def test_the_handlers_that_were_there_come_back():
    before = signal.getsignal(signal.SIGTERM)
    with interruption.handled():
        pass
    assert signal.getsignal(signal.SIGTERM) is before


EXITING = """
import atexit, sys, time
from bellman import interruption
interruption.take_over()
atexit.register(time.sleep, 0.3)
atexit.register(print, "exiting", flush=True)
interruption.ignore_from_now()
sys.exit(7)
"""


def test_none_spoils_the_exit_status_when_all_is_written():
    with subprocess.Popen([sys.executable, "-c", EXITING], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        for number in NUMBERS:
            process.send_signal(number)
        assert process.wait(60) == 7

"""The loop in virtual time, from outside: what a coroutine on it can see and do."""

import asyncio
import signal
import socket
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellman import virtual_time
from bellman.virtual_time import TICK_S, Deadlock, NotInVirtualTime


def now_s() -> float:
    return asyncio.get_running_loop().time()


def test_the_clock_starts_at_0_and_a_year_passes_at_once():
    async def main():
        before_s = now_s()
        await asyncio.sleep(365 * 86_400.0)
        return before_s, now_s()

    assert virtual_time.run(main()) == (0.0, 365 * 86_400.0)


def test_time_stands_still_while_the_loop_works():
    async def main():
        for _ in range(1000):
            await asyncio.sleep(0)
        time.sleep(0.01)
        return now_s()

    assert virtual_time.run(main()) == 0.0


@given(st.lists(st.floats(0.0, 1e5), max_size=50))
def test_every_timer_is_due_on_its_tick_in_the_order_of_time(delays_s):
    async def main():
        woken = []

        async def sleep(delay_s):
            await asyncio.sleep(delay_s)
            woken.append((delay_s, now_s()))

        await asyncio.gather(*map(sleep, delays_s))
        return woken

    woken = virtual_time.run(main())
    assert [delay_s for delay_s, _ in woken] == sorted(delays_s)
    assert all(abs(at_s - delay_s) <= TICK_S for delay_s, at_s in woken)
    times_s = [at_s for _, at_s in woken]
    assert times_s == sorted(times_s)


@given(st.lists(st.integers(0, 5), max_size=60))
def test_timers_of_one_time_run_in_the_order_in_which_they_were_set(times_s):
    async def main():
        loop, run = asyncio.get_running_loop(), []
        for number, time_s in enumerate(times_s):
            loop.call_at(float(time_s), run.append, (time_s, number))
        await asyncio.sleep(6.0)
        return run

    assert virtual_time.run(main()) == sorted((t, number) for number, t in enumerate(times_s))


def test_a_cancelled_timer_moves_no_clock():
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await asyncio.sleep(1000.0)
        async with asyncio.timeout(1000.0):
            await asyncio.sleep(1.0)
        return now_s()

    assert virtual_time.run(main()) == 2.0


@pytest.mark.parametrize("delay_s", [None, float("inf")], ids=["no timer", "timer at infinity"])
def test_a_wait_that_nothing_can_end_is_reported_with_who_waits(delay_s):
    ended = []

    async def main():
        try:
            await asyncio.sleep(1.5)
            if delay_s is None:
                await asyncio.Event().wait()
            else:
                await asyncio.sleep(delay_s)
        finally:
            ended.append(True)

    with pytest.raises(Deadlock, match=r"nothing is left that could wake .*main"):
        virtual_time.run(main())
    assert ended, "the waiting task was not cancelled"


async def getaddrinfo():
    await asyncio.get_running_loop().getaddrinfo("localhost", 80)


async def connect_to_an_address():
    await asyncio.open_connection("127.0.0.1", 9)


async def connect_to_a_name():
    await asyncio.open_connection("localhost", 9)


async def serve():
    await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)


async def unix_socket():
    await asyncio.open_unix_connection("/nowhere")


async def datagram():
    await asyncio.get_running_loop().create_datagram_endpoint(
        asyncio.DatagramProtocol, remote_addr=("127.0.0.1", 9)
    )


async def raw_socket():
    one, other = socket.socketpair()
    with one, other:
        one.setblocking(False)
        await asyncio.get_running_loop().sock_recv(one, 1)


async def reader():
    one, other = socket.socketpair()
    with one, other:
        asyncio.get_running_loop().add_reader(one, print)


async def process():
    await asyncio.create_subprocess_exec("true")


async def shell():
    await asyncio.create_subprocess_shell("true")


async def pipe():
    with open("/dev/null", "rb") as file:  # noqa: PTH123
        await asyncio.get_running_loop().connect_read_pipe(asyncio.Protocol, file)


async def thread():
    await asyncio.to_thread(int)


@pytest.mark.parametrize(
    "work",
    [
        *(getaddrinfo, connect_to_an_address, connect_to_a_name, serve, unix_socket, datagram),
        *(raw_socket, reader, process, shell, pipe, thread),
    ],
)
def test_whatever_reaches_outside_is_refused_by_name(work):
    with pytest.raises(NotInVirtualTime, match=r"in virtual time: \w+ was called"):
        virtual_time.run(work())


def test_every_method_of_asyncios_loop_that_does_io_is_refused():
    """A method that a later Python adds stands out here."""
    # What is left is the loop's own business: tasks, timers, errors, its life.
    own = {"call_at", "call_exception_handler", "call_later", "call_soon", "call_soon_threadsafe"}
    own |= {"close", "create_future", "create_task", "default_exception_handler", "get_debug"}
    own |= {"get_exception_handler", "get_task_factory", "is_closed", "is_running", "run_forever"}
    own |= {"run_until_complete", "set_debug", "set_exception_handler", "set_task_factory", "stop"}
    own |= {"shutdown_asyncgens", "shutdown_default_executor", "time", "remove_signal_handler"}
    names = {name for name in dir(asyncio.AbstractEventLoop) if not name.startswith("_")}
    assert names - own == set(virtual_time.REFUSED)


def test_another_thread_cannot_wake_the_loop():
    async def main():
        loop = asyncio.get_running_loop()
        refused = []

        def wake():
            try:
                loop.call_soon_threadsafe(print)
            except NotInVirtualTime as error:
                refused.append(str(error))

        other = threading.Thread(target=wake)
        other.start()
        other.join()
        return refused

    assert virtual_time.run(main()) == ["another thread cannot wake a loop in virtual time"]


def test_ctrl_c_cancels_the_run_and_lets_it_end_in_order():
    ended = []

    async def main():
        try:
            while True:
                await asyncio.sleep(1.0)
                if now_s() == 1000.0:
                    signal.raise_signal(signal.SIGINT)
        finally:
            await asyncio.sleep(1.0)  # what ends in order may take its (virtual) time
            ended.append(now_s())

    with pytest.raises(KeyboardInterrupt):
        virtual_time.run(main())
    assert ended == [1001.0]

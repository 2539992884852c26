"""Attempts are written as they end, so that a killed run has all that had ended."""

import asyncio
from collections.abc import Awaitable, Callable

from bellman.attempts.log import AttemptLog
from bellman.engines.base import RequestFailed
from bellman.records import AttemptRecord, RequestRecord
from bellman.virtual_time import VirtualTimeLoop

REFUSED = RequestFailed("rejected", "full", http_status=503, retry_after_s=4.0)


def a_request(number: int = 1) -> RequestRecord:
    return RequestRecord(0, "arm", number, "d", "calm", 0.0, "simulated", "unfinished")


def run(scenario: Callable[[AttemptLog, list[AttemptRecord]], Awaitable[None]]) -> None:
    async def main() -> None:
        written: list[AttemptRecord] = []
        await asyncio.sleep(100.0)  # times count from the log's beginning
        await scenario(AttemptLog(written.append, 0, "arm", "simulated"), written)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main())


def test_each_is_written_when_it_ends() -> None:
    async def scenario(log: AttemptLog, written: list[AttemptRecord]) -> None:
        first = log.begin(1, "first")
        await asyncio.sleep(1.0)
        log.end(first, REFUSED)
        assert written == [
            AttemptRecord(
                *(0, "arm", 1, 1, 0.0, "simulated", "rejected"),
                ended_s=1.0,
                http_status=503,
                reason="full",
                retry_after_s=4.0,
                replica="first",
            )
        ]
        await asyncio.sleep(4.0)
        second = log.begin(1, "spare")
        await asyncio.sleep(2.0)
        log.end(second, None)
        assert (written[1].attempt, written[1].sent_s, written[1].ended_s) == (2, 5.0, 7.0)
        record = a_request()
        log.finish(record)
        assert (record.attempts, record.replica, len(written)) == (2, "spare", 2)

    run(scenario)


def test_one_that_is_out_ends_as_its_request() -> None:
    async def scenario(log: AttemptLog, written: list[AttemptRecord]) -> None:
        log.begin(1, None)
        log.begin(2, None)
        record = a_request()
        record.status, record.reason, record.ended_s = "timeout", "too late", 9.0
        log.finish(record)
        (attempt,) = written
        assert (attempt.status, attempt.reason, attempt.ended_s) == ("timeout", "too late", 9.0)
        log.finish(a_request(2))
        assert written[1].status == "unfinished"

    run(scenario)


def test_a_request_that_was_never_sent_has_none() -> None:
    async def scenario(log: AttemptLog, written: list[AttemptRecord]) -> None:
        record = a_request()
        log.finish(record)
        assert (record.attempts, written) == (0, [])

    run(scenario)

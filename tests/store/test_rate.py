"""Requests through two gateways, at a rate that any machine carries: none is lost, both agree."""

import asyncio

import pytest

from benchmarks.sender import REQUEST, Gateway
from benchmarks.two_gateways import ages_s, lags_s, report, run
from tests.servers import raw_server
from tests.store.servers import needs_redis


@pytest.mark.slow
@pytest.mark.alone
@needs_redis
async def test_no_request_is_lost_and_both_hand_out_the_same_levels() -> None:
    outcome = await run(rate=60.0, seconds=5.0)
    assert outcome.sent == outcome.answered == outcome.served == 300
    one, other = (gateway.seen for gateway in outcome.gateways)
    lags, _ = lags_s(one, other)
    assert len(lags) >= 2
    for seen in (one, other):  # the law only raises its level: neither goes back to an old one
        levels = [float(level) for _, level in seen]
        assert levels == sorted(levels)
    assert outcome.processor_s.keys() == {"sender", "gateway 1", "gateway 2", "server", "redis"}
    assert "lost 0, the server saw 300" in report(outcome, 60.0)


ONE = [(1.0, "0.1000"), (1.75, "0.1000"), (2.0, "0.2000"), (3.0, "0.3000")]
OTHER = [(1.5, "0.1000"), (2.25, "0.2000"), (2.5, "0.2000"), (2.75, "0.2000")]


def test_a_lag_is_how_much_later_the_other_had_a_level() -> None:
    assert lags_s(ONE, OTHER) == ([0.5, 0.25], 1)


def test_a_level_is_as_old_as_its_first_answer_from_either() -> None:
    assert ages_s(ONE, OTHER) == [0.0, 0.75, 0.0, 0.0]
    assert ages_s(OTHER, ONE) == [0.5, 0.25, 0.5, 0.75]


async def test_an_answer_that_does_not_come_whole_is_a_request_lost() -> None:
    answers = [
        b"HTTP/1.1 200 OK\r\nx-bellman-congestion: 0.5000\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok",
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
        b"",
    ]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(REQUEST))
        writer.write(answers.pop())
        writer.close()

    async with raw_server(answer) as url:
        gateway = Gateway(url)
        for _ in range(len(answers)):
            gateway.ask()
            async with asyncio.timeout(60):
                while gateway.outstanding:
                    await asyncio.sleep(0.001)
        assert [level for _, level in gateway.seen] == ["0.5000"]
        assert len(gateway.latencies_s) == 1
        gateway.close()

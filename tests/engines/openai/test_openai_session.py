"""The streaming client against a real server process with known timing, and with faults."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from bellman.engines.base import Completion, EngineDied, RequestFailed
from bellman.engines.openai.failures import message_of, seconds_to_wait
from bellman.signal import SignalReceiver
from tests.servers import Mock, a_request, ignore, raw_server


async def fails(mock: Mock, timeout_s: float = 120.0) -> RequestFailed:
    with pytest.raises(RequestFailed) as failure:
        await mock.session(timeout_s).generate(a_request(), ignore)
    return failure.value


async def test_times_and_tokens_are_the_servers(mock: Mock) -> None:
    await mock.behave(
        ttft_s=0.2, gap_s=0.2, chunks=["a b", " c", " d", " e", " f"], tokens_per_chunk=4
    )
    loop = asyncio.get_running_loop()
    sent_s = loop.time()
    answer = await mock.session().generate(a_request(), ignore)
    ended_s = loop.time()
    assert answer.text == "a b c d e f"
    assert answer.output_tokens == 20  # five chunks of four tokens
    assert answer.prompt_tokens == 7
    assert answer.finish_reason == "stop"
    # The server sleeps 0.2 s and 4 times 0.2 s; an upper bound would be a bet on the machine.
    assert answer.first_token_s - sent_s >= 0.2
    assert answer.last_token_s - answer.first_token_s >= 0.4
    assert ended_s >= answer.last_token_s


async def test_tokens_are_none_where_the_server_reports_none(mock: Mock) -> None:
    await mock.behave(usage=False)
    answer = await mock.session().generate(a_request(), ignore)
    assert (answer.text, answer.output_tokens, answer.prompt_tokens) == (
        "One two three.",
        None,
        None,
    )


@pytest.mark.parametrize(
    "behaviour",
    [
        {"bytes_per_write": 1},
        {"newline": "\r\n"},
        {"newline": "\r"},
        {"last_newline": False},
        {"newline": "\r\n", "bytes_per_write": 3, "last_newline": False},
    ],
)
async def test_every_way_to_write_a_stream(mock: Mock, behaviour: dict[str, Any]) -> None:
    await mock.behave(chunks=["Café", " 🎉", " 日本", "\n\ndata: x"], **behaviour)
    answer = await mock.session().generate(a_request(), ignore)
    assert answer.text == "Café 🎉 日本\n\ndata: x"
    assert answer.output_tokens == 4


async def test_a_chunk_of_a_megabyte(mock: Mock) -> None:
    text = "wörd " * 200_000
    await mock.behave(chunks=[text])
    assert (await mock.session().generate(a_request(), ignore)).text == text


async def test_every_second_request_is_refused(mock: Mock) -> None:
    await mock.behave(refuse_every=2)
    session = mock.session()
    results = await asyncio.gather(
        *(session.generate(a_request(), ignore) for _ in range(10)), return_exceptions=True
    )
    refused = [result for result in results if isinstance(result, RequestFailed)]
    assert len(refused) == 5
    assert {failure.status for failure in refused} == {"rejected"}
    assert {failure.reason for failure in refused} == {"HTTP 429: the mock is full"}
    assert sum(isinstance(result, Completion) for result in results) == 5


@pytest.mark.parametrize(
    ("status", "expected"), [(503, "rejected"), (400, "error"), (404, "error"), (500, "error")]
)
async def test_http_errors(mock: Mock, status: int, expected: str) -> None:
    await mock.behave(refuse_every=1, refuse_status=status)
    failure = await fails(mock)
    assert (failure.status, failure.reason) == (expected, f"HTTP {status}: the mock is full")
    assert (failure.http_status, failure.retry_after_s) == (status, None)


async def test_a_refusal_says_when_to_come_again(mock: Mock) -> None:
    await mock.behave(refuse_every=1, headers=[["Retry-After", "17"]])
    failure = await fails(mock)
    assert (failure.http_status, failure.retry_after_s) == (429, 17.0)


@pytest.mark.parametrize(
    ("header", "wait_s"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("86400", 86400.0),
        ("86401", None),
        ("9" * 400, None),
        ("-1", None),
        ("1.5", None),
        ("\u0663", None),
        ("soon", None),
        ("", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 2015 07:28:00", 0.0),
        ("Wed, 21 Oct 9998 07:28:00 GMT", None),
        ("Wed, 99 Oct 2015 07:28:00 GMT", None),
    ],
)
def test_seconds_or_a_date(header: str, wait_s: float | None) -> None:
    assert seconds_to_wait(header) == wait_s


def test_a_date_that_comes() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    wait_s = seconds_to_wait(date)
    assert wait_s is not None and 3000 < wait_s <= 3600


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ({"error_after": 2}, "error in the stream: the mock broke"),
        ({"cut_after": 2}, "connection failed"),
        ({"done": False}, "ended before [DONE]"),
        ({"finish_reason": None}, "ended before a finish_reason"),
        ({"finish_reason": "abort"}, "finish_reason abort"),
        ({"chunks": []}, "no text"),
    ],
)
async def test_a_broken_stream_is_no_success(
    mock: Mock, behaviour: dict[str, Any], reason: str
) -> None:
    await mock.behave(**behaviour)
    failure = await fails(mock)
    assert failure.status == "error"
    assert reason in failure.reason


async def test_a_server_that_never_answers_meets_the_deadline(mock: Mock) -> None:
    await mock.behave(never_answers=True)
    failure = await fails(mock, timeout_s=0.3)
    assert (failure.status, failure.reason) == ("timeout", "no whole answer within 0.3 s")


async def test_the_deadline_also_ends_a_slow_stream(mock: Mock) -> None:
    await mock.behave(gap_s=0.2, chunks=["a"] * 50)
    assert (await fails(mock, timeout_s=0.5)).status == "timeout"


async def test_a_cancelled_request_is_cancelled_at_the_server(mock: Mock) -> None:
    await mock.behave(gap_s=0.02, chunks=["a"] * 20_000)
    headers = asyncio.Event()
    task = asyncio.create_task(mock.session().generate(a_request(), lambda values: headers.set()))
    await headers.wait()
    task.cancel()
    async with asyncio.timeout(60):
        while (await mock.counts())["cancelled"] == 0:
            await asyncio.sleep(0.02)


async def test_the_pool_lets_every_request_through_at_once(mock: Mock) -> None:
    await mock.behave(never_answers=True)
    session = mock.session()
    tasks = [asyncio.create_task(session.generate(a_request(), ignore)) for _ in range(150)]
    async with asyncio.timeout(60):
        while (await mock.counts())["requests"] < 150:
            await asyncio.sleep(0.02)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_forced_length(mock: Mock) -> None:
    await mock.behave(tokens_per_chunk=4)
    answer = await mock.session().generate(a_request(forced_output_tokens=40), ignore)
    assert (answer.output_tokens, answer.text) == (40, None)


async def test_a_server_that_ignores_the_forced_length_fails(mock: Mock) -> None:
    await mock.behave(ignores_forced_length=True)
    with pytest.raises(RequestFailed, match="40 tokens asked, 4 reported"):
        await mock.session().generate(a_request(forced_output_tokens=40), ignore)


@pytest.mark.parametrize("values", [["nan"], ["1e309"], ["-3"], ["0,5"], ["0.1", "0.2"], [""]])
async def test_a_malformed_signal_changes_nothing(mock: Mock, values: list[str]) -> None:
    receiver = SignalReceiver()
    session = mock.session()
    await mock.behave(headers=[["x-bellman-congestion", "0.25"]])
    await session.generate(a_request(), lambda got: receiver.receive(got, 1.0))
    await mock.behave(headers=[["x-bellman-congestion", value] for value in values])
    await session.generate(a_request(), lambda got: receiver.receive(got, 2.0))
    await mock.behave()
    await session.generate(a_request(), lambda got: receiver.receive(got, 3.0))
    assert receiver.last is not None
    assert (receiver.last.level, receiver.last.time_s) == (0.25, 1.0)
    assert (receiver.received, receiver.malformed, receiver.absent) == (1, 1, 1)


async def test_errors_carry_the_signal_too(mock: Mock) -> None:
    await mock.behave(refuse_every=1, headers=[["x-bellman-congestion", "0.75"]])
    got: list[Sequence[str]] = []
    with pytest.raises(RequestFailed):
        await mock.session().generate(a_request(), got.append)
    assert got == [["0.75"]]


async def test_headers_come_before_the_first_token(mock: Mock) -> None:
    await mock.behave(ttft_s=0.8)
    loop = asyncio.get_running_loop()
    times: list[float] = []
    answer = await mock.session().generate(a_request(), lambda values: times.append(loop.time()))
    assert len(times) == 1
    assert answer.first_token_s - times[0] >= 0.2


async def test_nobody_listens(mock: Mock) -> None:
    gone = Mock(mock.pool, "http://127.0.0.1:9")
    failure = await fails(gone)
    assert failure.status == "error"
    assert "connection failed" in failure.reason
    assert (await gone.session().state()).level is None


async def test_a_dead_process_is_an_engine_that_died(mock: Mock) -> None:
    async def died() -> str | None:
        return "the server was killed by signal 9"

    session = Mock(mock.pool, "http://127.0.0.1:9").session(died=died)
    with pytest.raises(EngineDied, match="signal 9"):
        await session.generate(a_request(), ignore)
    with pytest.raises(EngineDied, match="signal 9"):
        await session.state()


async def test_a_refusal_does_not_ask_whether_the_process_died(mock: Mock) -> None:
    async def died() -> str | None:
        raise AssertionError

    await mock.behave(refuse_every=1)
    with pytest.raises(RequestFailed):
        await mock.session(died=died).generate(a_request(), ignore)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
            "not",
        ),
        (
            b"HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n",
            "HTTP 302: redirects to /x: engine.base_url must lead there",
        ),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "connection failed"),
        (b"", "connection failed"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: \xff\xfe\n\n",
            "no JSON object in the stream",
        ),
    ],
)
async def test_a_server_that_speaks_something_else(mock: Mock, reply: bytes, reason: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        await writer.drain()
        writer.close()

    async with raw_server(answer) as url:
        failure = await fails(Mock(mock.pool, url))
    assert failure.status == "error"
    assert reason in failure.reason


async def test_a_body_that_is_no_http_any_more_ends_its_request_alone(mock: Mock) -> None:
    """On a connection that stays open, and in a read of its own."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
        writer.write(head + b"transfer-encoding: chunked\r\n\r\n6\r\ndata: \r\n")
        await asyncio.sleep(0.1)
        writer.write(b"no size\r\n")
        await reader.read()
        writer.close()

    async with raw_server(answer) as url:
        failure = await fails(Mock(mock.pool, url))
    assert failure.status == "error"
    assert "connection failed" in failure.reason


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "too\\nlong", "type": "x"}}', "too long"),
        (b'{"object": "error", "message": "bad model"}', "bad model"),
        (b'{"detail": "Not Found"}', "Not Found"),
        (b'{"error": "plain"}', "plain"),
        (b"<html>\n  oops", "<html> oops"),
        (b'{"code": 3}', '{"code": 3}'),
        (b"x" * 1000, "x" * 300 + "..."),
    ],
)
def test_messages_of_error_bodies(body: bytes, message: str) -> None:
    assert message_of(body) == message

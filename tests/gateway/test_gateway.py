"""The gateway as a process in front of a server that knows nothing of it."""

import asyncio
import socket
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from bellman.admission.accept_all import AcceptAll
from bellman.admission.queue_limit import QueueLimit
from bellman.build import build
from bellman.controllers.bellman import QueueLaw
from bellman.controllers.none import NoControl
from bellman.engines.base import Control, RequestFailed
from bellman.engines.openai.child import child_server
from bellman.engines.openai.control import put_control
from bellman.gateway.__main__ import main
from bellman.gateway.arguments import control
from bellman.gateway.proxy import end_to_end
from bellman.signal import HEADER
from tests.servers import (
    MIDDLEWARE,
    MOCK,
    ROOT,
    Mock,
    a_request,
    gateway,
    ignore,
    outstanding,
    raw_server,
)

LAW = QueueLaw(q_low=0, q_high=10, max_step=1.0)


async def wait_for(mock: Mock, count: int) -> None:
    async with asyncio.timeout(60):
        while await outstanding(mock) != count:
            await asyncio.sleep(0.01)


async def test_a_stream_comes_through_as_it_is(mock: Mock, urls: tuple[str, str]) -> None:
    await mock.behave(chunks=["Café", " 🎉", "x" * 20_000], bytes_per_write=7)
    bodies = []
    for url in urls:
        body = {"stream": True, "stream_options": {"include_usage": True}}
        async with mock.pool.post(f"{url}/v1/chat/completions", json=body) as response:
            bodies.append((response.status, response.content_type, await response.read()))
    assert bodies[0] == bodies[1]
    answer = await mock.session().generate(a_request(), ignore)
    assert (answer.output_tokens, answer.finish_reason) == (3, "stop")


@pytest.mark.parametrize("status", [400, 429, 503])
@pytest.mark.parametrize("stream", [True, False])
async def test_answers_and_errors_are_the_servers(
    mock: Mock, urls: tuple[str, str], status: int, stream: bool
) -> None:
    await mock.behave(
        refuse_every=2, refuse_status=status, headers=[["x-own", "1"], ["x-own", "2"]]
    )
    answers = []
    for url in (urls[0], urls[0], urls[1], urls[1]):
        async with mock.pool.post(
            f"{url}/v1/chat/completions", json={"stream": stream}
        ) as response:
            own = response.headers.getall("x-own")
            answers.append((response.status, own, await response.text()))
            assert (HEADER in response.headers) == (url == urls[1])
            assert response.headers.getall(HEADER, ["0.0000"]) == ["0.0000"]
    assert answers[:2] == answers[2:]
    assert [answer[0] for answer in answers] == [200, status] * 2


async def test_a_stream_is_not_collected(mock: Mock) -> None:
    await mock.behave(gap_s=0.02, chunks=["a"] * 20_000)
    async with mock.pool.post(f"{mock.url}/v1/chat/completions", json={"stream": True}) as response:
        async for line in response.content:
            if b'"content": "a"' in line:
                break
        assert await outstanding(mock) == 1


async def test_a_client_that_leaves_is_cancelled_at_the_upstream(mock: Mock) -> None:
    await mock.behave(gap_s=0.02, chunks=["a"] * 20_000)
    task = asyncio.create_task(mock.session().generate(a_request(), ignore))
    await wait_for(mock, 1)
    task.cancel()
    await wait_for(mock, 0)
    async with asyncio.timeout(60):
        while (await mock.counts())["cancelled"] == 0:
            await asyncio.sleep(0.01)


async def test_a_cut_stream_stays_cut(mock: Mock) -> None:
    await mock.behave(cut_after=2)
    with pytest.raises(RequestFailed, match="connection failed"):
        await mock.session().generate(a_request(), ignore)


async def test_the_law_runs_on_what_passes_and_on_what_is_scraped(mock: Mock) -> None:
    await mock.behave(gap_s=0.02, chunks=["a"] * 20_000, places=2)
    await put_control(mock.pool, mock.url, Control(LAW, QueueLimit(5), 0.02))
    session = mock.session()
    tasks = [asyncio.create_task(session.generate(a_request(), ignore)) for _ in range(5)]
    async with asyncio.timeout(60):
        while True:
            state = await session.state()
            if state.level == 0.5 and state.observation and state.observation.running == 2:
                break
            await asyncio.sleep(0.02)
    assert state.observation.waiting == 3
    got: list[Sequence[str]] = []
    with pytest.raises(RequestFailed, match="queue limit"):
        await session.generate(a_request(), got.append)
    assert got == [["0.5000"]]
    for task in tasks:
        task.cancel()
    await put_control(mock.pool, mock.url, Control(NoControl(), AcceptAll(), 0.02))


async def test_other_methods_paths_and_queries_pass(mock: Mock) -> None:
    async with mock.pool.get(f"{mock.url}/v1/models?a=b%2Fc&d") as response:
        assert (await response.json())["data"][0]["id"] == "mock"
    async with mock.pool.head(f"{mock.url}/health") as response:
        assert response.status == 200
    async with mock.pool.delete(f"{mock.url}/nowhere") as response:
        assert response.status == 404


async def test_no_upstream_is_a_502_with_the_level(mock: Mock) -> None:
    async with gateway("http://127.0.0.1:9/v1") as url:
        for stream in (True, False):
            async with mock.pool.post(
                f"{url}/v1/chat/completions", json={"stream": stream}
            ) as response:
                assert response.status == 502
                assert response.headers.getall(HEADER) == ["0.0000"]
                message = (await response.json())["error"]["message"]
                assert "http://127.0.0.1:9 failed" in message
                assert "\n" not in message


async def test_an_upstream_that_signals_is_overruled(mock: Mock) -> None:
    async with (
        child_server([MOCK, "--middleware", MIDDLEWARE]) as upstream_url,
        gateway(upstream_url) as url,
        mock.pool.get(f"{url}/health") as response,
    ):
        assert len(response.headers.getall(HEADER)) == 1


async def test_what_goes_up(mock: Mock) -> None:
    seen = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        if head.startswith("POST"):
            length = next(line for line in head.split("\r\n") if line.startswith("Content-Length"))
            seen.set_result((head, await reader.readexactly(int(length.split(":")[1]))))
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close, x-hop\r\nx-hop: 1\r\nx-end: 2\r\n\r\n")
        writer.close()

    async def chunked() -> Any:
        yield b'{"a"'
        yield b": 1}"

    headers = {
        "Connection": "keep-alive, X-Secret",
        "X-Secret": "1",
        "X-Own": "ü",
        "TE": "trailers",
    }
    async with (
        raw_server(answer) as upstream_url,
        gateway(upstream_url) as url,
        mock.pool.post(f"{url}/a%20b?c=d", data=chunked(), headers=headers) as response,
    ):
        assert response.headers["x-end"] == "2"
        assert "x-hop" not in response.headers
        head, body = await seen
        assert body == b'{"a": 1}'
        assert head.startswith("POST /a%20b?c=d HTTP/1.1")
        assert "X-Own" in head.title()
        assert "X-Secret" not in head.title()
        assert "Transfer-Encoding" not in head.title()


def test_hop_by_hop_headers_are_left_out() -> None:
    headers = [(b"Connection", b"close, X-A"), (b"x-a", b"1"), (b"X-B", b"2"), (b"Host", b"h")]
    assert end_to_end(headers, frozenset((b"host",))) == [(b"X-B", b"2")]


async def test_it_ends_with_its_parent(mock: Mock) -> None:
    """A driver that is killed leaves no gateway behind: its standard input closes."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bellman.gateway", "--upstream", mock.url),
        *("--port", "0", "--with-parent"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None and process.stdin is not None
    assert (await process.stdout.readline()).startswith(b"http://127.0.0.1:")
    process.stdin.close()
    async with asyncio.timeout(60):
        assert await process.wait() == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "70000"], "--port=70000"),
        (["--controller", "nope"], "bellman, bellman_knee, "),
        (["--controller", '{"_target_": "os.system"}'], "must be a class of bellman.controllers"),
        (["--scrape-period-s", "0"], "--scrape-period-s=0.0"),
        (["--upstream", "localhost"], "must be like http://"),
        (["--upstream", "http://127.0.0.1:9/v1"], "http://127.0.0.1:9 is given twice"),
        (["--upstream", "a=http://h", "--upstream", "a=http://i"], "a is given twice"),
        (["--workers", "0"], "--workers=0: must be 1 or more"),
        (["--workers", "2"], "--workers=2: must be 1 without --store"),
        (["--spill-above", "1.5"], "--spill-above=1.5"),
        (["--store", "http://127.0.0.1"], "--store=...: must be redis://"),
        (["--host", "192.0.2.1"], "cannot listen on 192.0.2.1"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["gateway", "--upstream", "http://127.0.0.1:9", "--port", "0", *arguments]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    assert message in str(ended.value)
    assert "\n" not in str(ended.value)


@pytest.mark.parametrize(
    ("name", "period_s"),
    [("bellman", 1.0), ("bellman_knee", 1.0), ("threshold", 1.0), ("none", 1.0), ("dimmer", 0.5)],
)
def test_the_law_of_any_arm_goes_by_the_arms_name(name: str, period_s: float) -> None:
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        arms = compose("config", overrides=[f"arm=[{name}]"]).arms
    assert control(name).controller == build(arms[name].controller, "controller")
    assert control(name).period_s == period_s


def test_a_busy_port_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = str(busy.getsockname()[1])
        command = ["gateway", "--upstream", "http://127.0.0.1:9", "--port", port]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit, match=f"cannot listen on 127.0.0.1:{port}.*try --port"):
            main()

"""A real Chromium, driven by its own DevTools protocol."""

import asyncio
import base64
import itertools
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--remote-debugging-port=0",
    "--window-size=1000,1000",
)
START_S = 60.0


class Page:
    """The one page of a browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)

    async def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            message = await self._socket.receive_json()
            if message.get("id") == number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result

    async def value(self, expression: str) -> Any:
        """Return what an expression is in the page."""
        answer = await self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def until(self, expression: str, within_s: float = 60.0) -> None:
        """Wait until an expression is true in the page."""
        async with asyncio.timeout(within_s):
            while not await self.value(expression):
                await asyncio.sleep(0.1)

    async def open(self, url: str) -> None:
        await self.send("Page.navigate", url=url)

    async def picture(self) -> bytes:
        return base64.b64decode((await self.send("Page.captureScreenshot"))["data"])


@asynccontextmanager
async def page(folder: Path) -> AsyncIterator[Page]:
    """Start a browser with an empty page; it ends with this context."""
    assert PROGRAM is not None
    process = await asyncio.create_subprocess_exec(
        *(PROGRAM, *OPTIONS, f"--user-data-dir={folder}", "about:blank"),
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        port = await _port(folder / "DevToolsActivePort")
        async with aiohttp.ClientSession() as pool:
            async with pool.get(f"http://127.0.0.1:{port}/json/list") as response:
                (target,) = [one for one in await response.json() if one["type"] == "page"]
            async with pool.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        process.terminate()
        await process.wait()


async def _port(file: Path) -> str:
    async with asyncio.timeout(START_S):
        while True:
            lines = file.read_text().splitlines() if file.exists() else []
            if len(lines) > 1:
                return lines[0]
            await asyncio.sleep(0.1)

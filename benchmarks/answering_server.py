"""A server behind gateways that answers every POST the same after a time, at little cost.

GET / says how many POSTs there were. A target that ends in `?held` is never answered.

    python benchmarks/answering_server.py [--service-s 0.2]
"""

import argparse
import asyncio
from functools import partial

ANSWER = b'{"choices": [{"message": {"role": "assistant", "content": "Yes."}}]}'
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
    len(ANSWER),
    ANSWER,
)
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
LENGTH = b"content-length: "


class Server(asyncio.Protocol):
    """One connection of the server."""

    served = 0
    """POSTs of all connections."""

    def __init__(self, service_s: float) -> None:
        self._service_s = service_s
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        """Answer each whole request."""
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head, length = self._data[:end].lower(), 0
            if (place := head.find(LENGTH)) >= 0:
                length = int(head[place + len(LENGTH) :].split(b"\r\n", 1)[0])
            if len(self._data) < end + 4 + length:
                return
            self._data = self._data[end + 4 + length :]
            self._take(head.split(b" ", 2))

    def _take(self, head: list[bytes]) -> None:
        method, target = head[:2]
        if target.endswith(b"?held"):
            return
        if method == b"post":
            Server.served += 1
            self._loop.call_later(self._service_s, self._answer, RESPONSE)
        elif target == b"/":
            text = b"%d" % Server.served
            self._answer(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text))
        else:
            self._answer(NOT_FOUND)

    def _answer(self, response: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(response)


async def serve(service_s: float) -> None:
    """Serve until ended."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(partial(Server, service_s), "127.0.0.1", 0, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--service-s", type=float, default=0.2, help="until the answer")
    asyncio.run(serve(parser.parse_args().service_s))

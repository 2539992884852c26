"""uvicorn's HTTP/1.1 with a deadline for a request's head, and 408 and 431 where they are due."""

import asyncio
import sys
from http import HTTPStatus

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_DEADLINE_S = 10.0
"""From a connection's start, or a head's first byte on a used one, to the head's end."""


class GatewayProtocol(H11Protocol):
    """Serves one connection; uvicorn offers no other place to end one that sends no whole head."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first head."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; those of a head that is not whole yet do not extend its deadline."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._head_timer is None:
            self._await_head()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP/1.1 with the status of its fault (400, 431, 501), and close."""
        self._refuse(HTTPStatus(getattr(sys.exception(), "error_status_hint", 400)))

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_DEADLINE_S, self._head_is_late)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        if self.conn.trailing_data[0]:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        else:
            self.transport.close()

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer with a bare status where an answer is still possible, and close."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [("content-length", "0"), ("connection", "close")]
            response = h11.Response(status_code=status, headers=headers, reason=status.phrase)
            self.transport.write(self.conn.send(response) or b"")
        self.transport.close()

"""Takes down each time that a request is sent, apart from the request itself."""

import asyncio
from collections.abc import Callable

from bellman.engines.base import RequestFailed
from bellman.records import AttemptRecord, RequestRecord
from bellman.source import Source


class AttemptLog:
    """The attempts of an episode, which starts now. Each is written as it ends, at the latest with
    its request.
    """

    def __init__(
        self,
        write: Callable[[AttemptRecord], None],
        repeat: int,
        arm: str,
        source: Source,
    ) -> None:
        self._write = write
        self._repeat = repeat
        self._arm = arm
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._start_s = self._loop.time()
        self._attempts: dict[int, int] = {}
        """Of the requests that have not ended."""
        self._replicas: dict[int, str | None] = {}
        """Where each of them was sent last."""
        self._open: dict[int, AttemptRecord] = {}

    def begin(self, request_id: int, replica: str | None) -> AttemptRecord:
        """Take note that a request is sent now."""
        self._replicas[request_id] = replica
        number = self._attempts[request_id] = self._attempts.get(request_id, 0) + 1
        attempt = self._open[request_id] = AttemptRecord(
            repeat=self._repeat,
            arm=self._arm,
            request_id=request_id,
            attempt=number,
            sent_s=self._loop.time() - self._start_s,
            source=self._source,
            status="unfinished",
            replica=replica,
        )
        return attempt

    def end(self, attempt: AttemptRecord, failure: RequestFailed | None) -> None:
        """Take note that an attempt ends now, in an answer or in a failure."""
        attempt.status = "ok"
        if failure is not None:
            attempt.status, attempt.reason = failure.status, failure.reason
            attempt.http_status = failure.http_status
            attempt.retry_after_s = failure.retry_after_s
        attempt.ended_s = self._loop.time() - self._start_s
        del self._open[attempt.request_id]
        self._write(attempt)

    def finish(self, record: RequestRecord) -> None:
        """Take note that a request has ended: an attempt that is out ends as its request did."""
        attempt = self._open.pop(record.request_id, None)
        record.attempts = self._attempts.pop(record.request_id, 0)
        record.replica = self._replicas.pop(record.request_id, None)
        if attempt is not None:
            attempt.status, attempt.reason = record.status, record.reason
            attempt.ended_s = record.ended_s
            self._write(attempt)

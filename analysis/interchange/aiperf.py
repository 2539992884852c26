"""AIPerf's `profile_export.jsonl` (version 0.13): one request a line, times in nanoseconds.

AIPerf counts `request_latency` from the actual send, and so do the lines written here; the intended
time is `credit_issued_ns`, with which the wait in between can be had from both.
"""

import json
from pathlib import Path
from typing import Any

from analysis.interchange.records import (
    OTHER_SHAPES,
    SIMULATED_WORKER,
    TOO_MANY_REQUESTS,
    Row,
    gaps_s,
    row,
)
from bellman.errors import RunError
from bellman.load.schedule import CONGESTED
from bellman.records import WARMUP, Status

NANOSECONDS = 1e9
PROFILING = "profiling"
ERROR_CODES = {"rejected": TOO_MANY_REQUESTS, "timeout": 408}


def to_line(request: Row, session_id: str) -> dict[str, Any]:
    """Return one request as AIPerf writes it. Times count from the episode's start."""
    sent_s = request["sent_s"] if request["sent_s"] is not None else request["intended_s"]
    ended_s = request["ended_s"] if request["ended_s"] is not None else sent_s
    simulated = request["source"] == "simulated"
    line: dict[str, Any] = {
        "metadata": {
            "session_num": request["request_id"],
            "x_request_id": f"{session_id}-{request['request_id']}",
            "x_correlation_id": f"{session_id}-{request['request_id']}",
            "conversation_id": request["document_id"],
            "turn_index": 0,
            "credit_issued_ns": _nanoseconds(request["intended_s"]),
            "request_start_ns": _nanoseconds(sent_s),
            "request_ack_ns": None,
            "request_end_ns": _nanoseconds(ended_s),
            "worker_id": SIMULATED_WORKER if simulated else "bellman",
            "record_processor_id": "bellman",
            "benchmark_phase": WARMUP if request["phase"] == WARMUP else PROFILING,
            "was_cancelled": request["status"] == "unfinished",
            "cancellation_time_ns": None,
        },
        "metrics": _metrics(request, sent_s),
        "error": None,
    }
    if request["status"] != "ok":
        line["error"] = {
            "code": ERROR_CODES.get(request["status"]),
            "type": request["status"],
            "message": request["reason"] or request["status"],
        }
    return line


def _metrics(request: Row, sent_s: float) -> dict[str, Any]:
    if request["status"] != "ok":
        return {}
    # As AIPerf does: a stream of one chunk has no gap, and no such metric.
    gaps_ms = [1e3 * gap_s for gap_s in gaps_s(request)]
    first_s, last_s = request["first_token_s"], request["last_token_s"]
    tokens = request["output_tokens"]
    values = [
        ("request_latency", 1e3 * (last_s - sent_s), "ms"),
        ("time_to_first_token", None if first_s is None else 1e3 * (first_s - sent_s), "ms"),
        ("output_sequence_length", tokens, "tokens"),
        ("output_token_count", tokens, "tokens"),
        ("input_sequence_length", request["prompt_tokens"], "tokens"),
        ("inter_chunk_latency", gaps_ms or None, "ms"),
    ]
    if tokens is not None and tokens > 1 and first_s is not None:
        gap_ms = 1e3 * (last_s - first_s) / (tokens - 1)
        values.append(("inter_token_latency", gap_ms, "ms"))
    return {
        name: {"value": value, "unit": unit} for name, value, unit in values if value is not None
    }


def _nanoseconds(seconds: float) -> int:
    return round(seconds * NANOSECONDS)


def read(path: Path, arm: str) -> list[Row]:
    """Read a profile_export.jsonl; times count from its first credit or send.

    Lines of AIPerf's profiling phase become the congested phase. Raises `RunError` with the line.
    """
    rows: list[Row] = []
    with path.open(encoding="utf-8") as file:
        for number, text in enumerate(file, start=1):
            if not text.strip():
                continue
            try:
                rows.append(_row(json.loads(text), arm, len(rows)))
            except OTHER_SHAPES as error:
                raise RunError(
                    f"{path}:{number}: not a line of AIPerf's profile_export.jsonl "
                    f"({type(error).__name__}: {error})"
                ) from None
    if not rows:
        raise RunError(f"{path}: no requests")
    start_s = min(request["intended_s"] for request in rows)
    for request in rows:
        for name in ("intended_s", "sent_s", "first_token_s", "last_token_s", "ended_s"):
            if request[name] is not None:
                request[name] = (request[name] - start_s) / NANOSECONDS
    return sorted(rows, key=lambda request: float(request["intended_s"]))


def _row(line: dict[str, Any], arm: str, request_id: int) -> Row:
    """Return a row whose times are still nanoseconds, so that none of their digits is lost."""
    metadata, metrics, error = line["metadata"], line["metrics"], line.get("error")
    sent_ns = metadata["request_start_ns"]
    intended_ns = metadata.get("credit_issued_ns")
    ended_ns = metadata.get("request_end_ns")

    def after_ms(name: str) -> int | None:
        return None if name not in metrics else sent_ns + round(1e6 * metrics[name]["value"])

    def tokens(name: str) -> int | None:
        return None if name not in metrics else int(metrics[name]["value"])

    gaps = metrics.get("inter_chunk_latency")
    status: Status = "ok"
    if metadata.get("was_cancelled"):
        status = "unfinished"
    elif error is not None:
        status = "rejected" if error.get("code") == TOO_MANY_REQUESTS else "error"
    last_ns = after_ms("request_latency")
    first_ns = after_ms("time_to_first_token")
    if status == "ok" and last_ns is None:
        raise KeyError("metrics.request_latency")
    return row(
        arm,
        request_id,
        status,
        None if error is None else str(error.get("message")),
        document_id=metadata.get("conversation_id") or "",
        source="simulated" if metadata.get("worker_id") == SIMULATED_WORKER else "measured",
        phase=WARMUP if metadata.get("benchmark_phase") == WARMUP else CONGESTED,
        intended_s=sent_ns if intended_ns is None else min(intended_ns, sent_ns),
        sent_s=sent_ns,
        first_token_s=first_ns if status == "ok" else None,
        last_token_s=last_ns if status == "ok" else None,
        ended_s=None if ended_ns is None else int(ended_ns),
        prompt_tokens=tokens("input_sequence_length"),
        output_tokens=tokens("output_sequence_length"),
        chunk_gaps_s=[1e-3 * gap_ms for gap_ms in gaps["value"]] if gaps else None,
    )

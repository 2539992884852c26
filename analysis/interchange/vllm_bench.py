"""The result file of `vllm bench serve --save-result --save-detailed` (vLLM 0.32), in seconds.

vLLM counts latency from the actual send; what a request waited at `--max-concurrency` before it is
in `queue_times`. The warm-up is not part of the file.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from analysis import metrics
from analysis.interchange.records import OTHER_SHAPES, TOO_MANY_REQUESTS, Row, gaps_s, row
from bellman.errors import RunError
from bellman.records import WARMUP, Status

DETAILED = ("start_times", "ttfts", "input_lens", "output_lens", "errors")
"""Besides `itls` or `latencies`: without either nobody knows when an answer ended."""


def to_result(requests: list[Row], answers: dict[str, str], label: str) -> dict[str, Any]:
    """Return the counted requests of one episode as vLLM writes them.

    Requests that were never sent are failures with their reason. `itls` holds the gaps between the
    chunks with text of a stream (vLLM's client counts empty chunks, too); a simulated run has none.
    """
    counted = [request for request in requests if request["phase"] != WARMUP]
    done = [request for request in counted if request["status"] == "ok"]
    ended_s = [r["ended_s"] for r in counted if r["ended_s"] is not None]
    starts_s = [_sent_s(request) for request in counted]
    duration_s = max(ended_s, default=0.0) - min(starts_s, default=0.0)
    prompt_tokens = _total(request["prompt_tokens"] for request in done)
    output_tokens = _total(request["output_tokens"] for request in done)
    all_tokens = _total([prompt_tokens, output_tokens])
    result: dict[str, Any] = {
        "endpoint_type": "openai-chat",
        "backend": "openai-chat",
        "label": label,
        "source": counted[0]["source"] if counted else None,
        "num_prompts": len(counted),
        "request_rate": metrics.per(len(counted), duration_s),
        "max_concurrency": None,
        "duration": duration_s,
        "completed": len(done),
        "failed": len(counted) - len(done),
        "total_input_tokens": prompt_tokens,
        "total_output_tokens": output_tokens,
        "request_throughput": metrics.per(len(done), duration_s),
        "output_throughput": metrics.per(output_tokens, duration_s),
        "total_token_throughput": metrics.per(all_tokens, duration_s),
        "input_lens": [_tokens(request, "prompt_tokens") for request in counted],
        "output_lens": [_tokens(request, "output_tokens") for request in counted],
        "ttfts": [_since_sent(request, "first_token_s") for request in counted],
        "itls": [gaps_s(request) for request in counted],
        "latencies": [_since_sent(request, "last_token_s") for request in counted],
        "start_times": starts_s,
        "queue_times": [_sent_s(request) - request["intended_s"] for request in counted],
        "generated_texts": [answers.get(request["text_id"] or "", "") for request in counted],
        "errors": [
            "" if request["status"] == "ok" else f"{request['status']}: {request['reason']}"
            for request in counted
        ],
    }
    for name, column in (("ttft", "first_token_s"), ("e2el", "last_token_s")):
        result |= _statistics(name, [_since_sent(request, column) for request in done])
    tpots = [_tpot_s(request) for request in done if request["output_tokens"] != 1]
    gaps = [gap_s for request in done for gap_s in gaps_s(request)]
    return result | _statistics("tpot", tpots) | _statistics("itl", gaps)


def _sent_s(request: Row) -> float:
    sent_s = request["sent_s"]
    return float(request["intended_s"] if sent_s is None else sent_s)


def _since_sent(request: Row, column: str) -> float | None:
    """Return what vLLM writes: 0 for a request that failed. None is unknown, which it never has."""
    if request["status"] != "ok":
        return 0.0
    return None if request[column] is None else float(request[column] - _sent_s(request))


def _tokens(request: Row, column: str) -> int | None:
    """Return a count, None where it is unknown; a request that failed has 0, as vLLM writes it."""
    count: int | None = request[column]
    return 0 if count is None and request["status"] != "ok" else count


def _total(counts: Iterable[int | None]) -> int | None:
    """Return a sum; None where one is unknown."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def _tpot_s(request: Row) -> float | None:
    first_s, tokens = request["first_token_s"], request["output_tokens"]
    if first_s is None or tokens is None:
        return None
    return float((request["last_token_s"] - first_s) / (tokens - 1))


def _statistics(name: str, seconds: Sequence[float | None]) -> dict[str, float | None]:
    """Return vLLM's four statistics of a time, in ms; None without a request, or one unknown."""
    if not seconds or None in seconds:
        return dict.fromkeys([f"{kind}_{name}_ms" for kind in ("mean", "median", "std", "p99")])
    values = 1e3 * np.array(seconds, dtype=np.float64)
    return {
        f"mean_{name}_ms": float(values.mean()),
        f"median_{name}_ms": float(np.median(values)),
        f"std_{name}_ms": float(values.std()),
        f"p99_{name}_ms": float(np.percentile(values, 99)),
    }


def read(path: Path, arm: str) -> list[Row]:
    """Read a detailed result file; raises `RunError` for any other."""
    try:
        result = json.loads(path.read_text())
    except (ValueError, RecursionError):
        raise RunError(f"{path}: not a JSON file") from None
    try:
        return _rows(result, path, arm)
    except OTHER_SHAPES as error:
        raise RunError(
            f"{path}: not a result of vllm bench serve ({type(error).__name__}: {error})"
        ) from None


def _rows(result: Any, path: Path, arm: str) -> list[Row]:
    needed = DETAILED if isinstance(result, dict) and "latencies" in result else (*DETAILED, "itls")
    missing = [name for name in needed if not isinstance(result, dict) or name not in result]
    if missing:
        raise RunError(
            f"{path}: no {', '.join(missing)}: run vllm bench serve with "
            "--save-result --save-detailed"
        )
    count = len(result["start_times"])
    lengths = {name: len(result[name]) for name in needed}
    if count == 0 or len(set(lengths.values())) > 1:
        raise RunError(f"{path}: lists of different lengths: {lengths}")
    latencies = result.get("latencies") or [
        None if ttft is None else ttft + sum(gaps)
        for ttft, gaps in zip(result["ttfts"], result["itls"], strict=True)
    ]
    queued = result.get("queue_times") or [0.0] * count
    streamed = "itls" in result and result.get("source") != "simulated"
    start_s = min(sent - wait for sent, wait in zip(result["start_times"], queued, strict=True))
    rows = []
    for index in range(count):
        error, sent_s = result["errors"][index], result["start_times"][index] - start_s
        ttft_s, latency_s = result["ttfts"][index], latencies[index]
        status: Status = "ok"
        if error:
            status = "rejected" if _was_refused(error) else "error"
        done = status == "ok"
        if done and latency_s is None:
            raise RunError(f"{path}: request {index} ended well, but has no latency")
        rows.append(
            row(
                arm,
                index,
                status,
                error or None,
                source=result.get("source") or "measured",
                intended_s=sent_s - queued[index],
                sent_s=sent_s,
                first_token_s=sent_s + ttft_s if done and ttft_s is not None else None,
                last_token_s=sent_s + latency_s if done else None,
                ended_s=sent_s + latency_s if done else None,
                prompt_tokens=result["input_lens"][index] or None,
                # An answer has a token at least: 0 is what a server without usage leaves.
                output_tokens=(result["output_lens"][index] or None) if done else None,
                chunk_gaps_s=result["itls"][index] if done and streamed else None,
            )
        )
    return sorted(rows, key=lambda request: float(request["intended_s"]))


def _was_refused(error: str) -> bool:
    return str(TOO_MANY_REQUESTS) in error or "Too Many Requests" in error or "rejected" in error

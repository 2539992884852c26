"""Replay loads with NVIDIA's Dynamo mocker; run by the interpreter of an environment that has it.

    pip install --no-deps ai-dynamo-runtime==1.6.1 ai-dynamo==1.6.1 && pip install typing_extensions

Reads one JSON object from standard input (engine arguments, and requests as [arrival_ms,
prompt_tokens, output_tokens]) and writes one to standard output. `benchmarks/beside_dynamo.py`
calls it.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from dynamo.replay import run_trace_replay  # type: ignore[import-not-found]

BLOCK = 16


def main() -> None:
    """Replay and report."""
    job = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.jsonl"
        first = 0
        with trace.open("w") as file:
            for arrival_ms, prompt, output in job["requests"]:
                blocks = -(-prompt // BLOCK)
                row = {
                    "timestamp": arrival_ms,
                    "input_length": prompt,
                    "output_length": output,
                    "hash_ids": list(range(first, first + blocks)),
                }
                first += blocks  # no two requests share a block
                file.write(json.dumps(row) + "\n")
        start, start_processor = time.perf_counter(), time.process_time()
        report = run_trace_replay(
            str(trace),
            extra_engine_args={"engine": {"backend": "vllm", "block_size": BLOCK, **job["engine"]}},
            trace_block_size=BLOCK,
            capture_per_request=job["per_request"],
        )
        wall_s = time.perf_counter() - start
        processor_s = time.process_time() - start_processor
    requests = [
        {
            "arrival_ms": row["arrival_time_ms"],
            "first_token_ms": row["first_token_ms"],
            "last_token_ms": row["last_token_ms"],
            "readmissions": row["readmission_count"],
            "output_tokens": row["output_length"],
        }
        for row in report.per_request or []
    ]
    times = {"wall_s": wall_s, "processor_s": processor_s}
    json.dump({**times, "summary": report.summary, "requests": requests}, sys.stdout)


if __name__ == "__main__":
    main()

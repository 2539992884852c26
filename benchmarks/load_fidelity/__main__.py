"""Runs every tool on every load and prints one table; see the package."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.load_fidelity.tools import Load, Tool, aiperf_tool, ours, vllm_tool

ROOT = Path(__file__).parents[2]
SERVER_PRIORITY, TOOL_PRIORITY = "30", "20"


@dataclass(frozen=True)
class Case:
    """A server's timing and a rate."""

    name: str
    ttft_ms: float
    gap_ms: float
    chunks: int
    rate_rps: float


CASES = [
    *(Case("null server", 0.0, 0.0, 1, rate) for rate in (200.0, 1000.0)),
    *(Case("20 ms TTFT, 4 tokens", 20.0, 10.0, 4, rate) for rate in (100.0, 500.0, 1000.0)),
    Case("256 streams of 2 s", 20.0, 50.0, 40, 128.0),
]


@dataclass(frozen=True)
class Fidelity:
    """What a tool did with a load. By the server's book but for the two TTFTs; times in ms."""

    case: str
    rate_rps: float
    tool: str
    requests: int
    answered: int
    achieved_rps: float
    lag_p50_ms: float
    """Arrival at the server against the constant schedule that fits it best from below."""
    lag_p99_ms: float
    lag_max_ms: float
    ttft_p50_ms: float
    """As the tool reports it, from its actual send."""
    ttft_p99_ms: float
    true_ttft_p50_ms: float
    """From arrival to first token at the server."""
    true_ttft_p99_ms: float
    processor_s: float
    """Of the tool and its processes, with their start."""
    wall_s: float


def measure(case: Case, tool: Tool, seconds: float, realtime: bool) -> Fidelity:
    """Run one tool on one load, against a server of its own."""
    server_command = [sys.executable, "-m", "benchmarks.load_fidelity.server"]
    server_command += ["--ttft-ms", str(case.ttft_ms), "--gap-ms", str(case.gap_ms)]
    server_command += ["--chunks", str(case.chunks)]
    server = subprocess.Popen(
        with_priority(server_command, SERVER_PRIORITY, realtime),
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as parent:
            load = Load(url, case.rate_rps, seconds, Path(parent) / "out")
            processor_s, wall_s = run(with_priority(tool.command(load), TOOL_PRIORITY, realtime))
            with urllib.request.urlopen(f"{url}/book") as response:
                book = json.load(response)
            done = [request for request in tool.read(load) if request["status"] == "ok"]
    finally:
        server.terminate()
        server.wait()
    # vllm bench serve sends one request before its test to see whether the server works.
    arrived_s = np.array(book["arrived_s"])[-load.requests :]
    first_s = np.array(book["first_token_s"], dtype=float)[-load.requests :]
    late_s = arrived_s - np.arange(len(arrived_s)) / case.rate_rps
    lag_ms = 1e3 * (late_s - late_s.min())
    ttft_ms = 1e3 * np.array([r["first_token_s"] - r["sent_s"] for r in done])
    true_ms = 1e3 * (first_s - arrived_s)
    return Fidelity(
        case=case.name,
        rate_rps=case.rate_rps,
        tool=tool.name,
        requests=load.requests,
        answered=len(done),
        achieved_rps=(len(arrived_s) - 1) / float(arrived_s[-1] - arrived_s[0]),
        lag_p50_ms=float(np.percentile(lag_ms, 50)),
        lag_p99_ms=float(np.percentile(lag_ms, 99)),
        lag_max_ms=float(lag_ms.max()),
        ttft_p50_ms=float(np.percentile(ttft_ms, 50)),
        ttft_p99_ms=float(np.percentile(ttft_ms, 99)),
        true_ttft_p50_ms=float(np.percentile(true_ms, 50)),
        true_ttft_p99_ms=float(np.percentile(true_ms, 99)),
        processor_s=processor_s,
        wall_s=wall_s,
    )


def with_priority(command: list[str], priority: str, realtime: bool) -> list[str]:
    """Return a command that runs with real-time priority, where that is asked for."""
    return ["chrt", "-r", priority, *command] if realtime else command


def run(command: list[str]) -> tuple[float, float]:
    """Run a tool to its end; returns processor seconds of it and its children, and wall-clock."""
    start_s = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=ROOT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            text = output.read().decode(errors="replace")[-2000:]
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{text}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - start_s


def table(rows: list[Fidelity]) -> str:
    """Return a Markdown table."""
    lines = [
        "| server | asked /s | tool | answered | achieved /s | lag p50 / p99 / max ms "
        "| TTFT p50 / p99 ms | true TTFT p50 / p99 ms | processor s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {r.case} | {r.rate_rps:g} | {r.tool} | {r.answered}/{r.requests} "
        f"| {r.achieved_rps:.2f} ({r.achieved_rps / r.rate_rps - 1:+.2%}) "
        f"| {r.lag_p50_ms:.2f} / {r.lag_p99_ms:.2f} / {r.lag_max_ms:.1f} "
        f"| {r.ttft_p50_ms:.2f} / {r.ttft_p99_ms:.2f} "
        f"| {r.true_ttft_p50_ms:.2f} / {r.true_ttft_p99_ms:.2f} | {r.processor_s:.1f} |"
        for r in rows
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure and print; `--out` keeps the numbers as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--aiperf", help="executable of AIPerf")
    parser.add_argument("--vllm", help="executable of vLLM")
    parser.add_argument("--tokenizer", help="absolute path of a tokenizer's folder, for both")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each load")
    parser.add_argument("--only", default="", help="only cases whose name or rate holds this")
    parser.add_argument("--realtime", action="store_true", help="for a machine that is not idle")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    tools = [ours()]
    if given.aiperf:
        tools.append(aiperf_tool(given.aiperf, given.tokenizer))
    if given.vllm:
        tools.append(vllm_tool(given.vllm, given.tokenizer))
    rows = []
    for case in CASES:
        if given.only in f"{case.name} {case.rate_rps:g}/s":
            for tool in tools:
                rows.append(measure(case, tool, given.seconds, given.realtime))
                print(table(rows[-1:]).splitlines()[-1], flush=True)
                if given.out:
                    given.out.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    print(f"\n{table(rows)}")


if __name__ == "__main__":
    main()

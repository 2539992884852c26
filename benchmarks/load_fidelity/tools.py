"""How each tool is started on the same load, and where it leaves its requests."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from analysis.interchange import aiperf, vllm_bench
from analysis.interchange.records import Row, episodes

PROMPT_TOKENS = 500
"""Of the tools that make prompts up; ours sends documents of about 1,000 tokens."""


@dataclass(frozen=True)
class Load:
    """Constant arrivals: the only ones whose every intended time the server can tell, too."""

    url: str
    rate_rps: float
    seconds: float
    folder: Path

    @property
    def requests(self) -> int:
        """Number of requests."""
        return round(self.rate_rps * self.seconds)


@dataclass(frozen=True)
class Tool:
    """A load generator: its command, and a reader of what it recorded."""

    name: str
    command: Callable[[Load], list[str]]
    read: Callable[[Load], list[Row]]


def ours() -> Tool:
    """Return this project's driver, application, client and records."""

    def command(load: Load) -> list[str]:
        arguments = ["--url", load.url, "--rate", str(load.rate_rps)]
        arguments += ["--seconds", str(load.seconds), "--out", str(load.folder)]
        return [sys.executable, "-m", "benchmarks.load_fidelity.ours", *arguments]

    return Tool("bellman", command, lambda load: next(episodes(load.folder))[2])


def aiperf_tool(executable: str, tokenizer: str) -> Tool:
    """Return AIPerf (0.13; runs offline with an absolute path of a tokenizer)."""

    def command(load: Load) -> list[str]:
        return [
            executable,
            "profile",
            *("--model", "mock", "--url", load.url, "--endpoint-type", "chat", "--streaming"),
            *("--request-rate", str(load.rate_rps), "--request-rate-mode", "constant"),
            *("--request-count", str(load.requests), "--use-server-token-count"),
            *("--synthetic-input-tokens-mean", str(PROMPT_TOKENS)),
            *("--tokenizer", tokenizer, "--artifact-dir", str(load.folder), "--ui", "none"),
        ]

    return Tool(
        "aiperf", command, lambda load: aiperf.read(load.folder / "profile_export.jsonl", "aiperf")
    )


def vllm_tool(executable: str, tokenizer: str) -> Tool:
    """Return `vllm bench serve`; so high a burstiness makes its gamma gaps constant."""

    def command(load: Load) -> list[str]:
        return [
            *(executable, "bench", "serve", "--backend", "openai-chat"),
            *("--base-url", load.url, "--endpoint", "/v1/chat/completions", "--model", "mock"),
            *("--tokenizer", tokenizer, "--dataset-name", "random"),
            *("--random-input-len", str(PROMPT_TOKENS), "--random-output-len", "4"),
            *("--num-prompts", str(load.requests), "--request-rate", str(load.rate_rps)),
            *("--burstiness", "1e9", "--disable-tqdm", "--save-result", "--save-detailed"),
            *("--result-dir", str(load.folder), "--result-filename", "result.json"),
        ]

    return Tool(
        "vllm bench serve",
        command,
        lambda load: vllm_bench.read(load.folder / "result.json", "vllm bench serve"),
    )

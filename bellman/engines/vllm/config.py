"""Configuration of a vLLM server of our own: `engine=vllm`, `engine=vllm_cpu`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from bellman.corpus.base import Corpus
from bellman.engines.openai.engine import OURS
from bellman.engines.vllm.engine import RunningVllm
from bellman.errors import require
from bellman.source import Source

OUR_ARGUMENTS = ("model", "served-model-name", "host", "port", "middleware")
"""Arguments of the server that the engine decides."""


@dataclass(frozen=True)
class VllmEngine:
    """A vLLM server that a run starts, warms up, and ends; `create` makes the engine."""

    source: ClassVar[Source] = "measured"

    model: str | None
    """Hub id, or a folder as scripts/prepare_model.py leaves it."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """Arguments of the server, as `python -m vllm.entrypoints.openai.api_server --help` has them:
    true is `--name`, false `--no-name`, null leaves vLLM's default."""
    environment: dict[str, str] = field(default_factory=dict)
    """Further environment variables of the server."""
    port: int | None = None
    """Port on this machine; None takes any free one."""
    start_deadline_s: float = 1800.0
    """From the start to the first healthy answer: loading and compiling included."""
    warmup_requests: int = 8
    """Sent at once before the first episode, with prompts that no schedule holds."""
    request_timeout_s: float = 600.0
    """Deadline of a request, from sending it to its last token."""
    sampling: dict[str, Any] = field(default_factory=dict)
    """Further entries of every request's body: temperature, seed, top_p..."""
    length_forced: bool = False
    """Take every answer's number of tokens from `bank`: for a model without real weights."""
    bank: Any = None
    """Configuration of a response bank: for `length_forced`, and for calibrated adaptation."""

    def __post_init__(self) -> None:
        """Check the values."""
        require(
            bool(self.model),
            "engine.model",
            self.model,
            "must be given: model=<hub id>, or the folder of scripts/prepare_model.py",
        )
        for name in self.arguments:
            ours = name.replace("_", "-") in OUR_ARGUMENTS
            require(not ours, f"engine.arguments.{name}", self.arguments[name], "is set by us")
        for name in OURS:
            require(
                name not in self.sampling,
                f"engine.sampling.{name}",
                self.sampling.get(name),
                "is set by the client",
            )
        port_fits = self.port is None or 0 < self.port < 65536
        require(port_fits, "engine.port", self.port, "must be 1 to 65535, or null for a free one")
        for name in ("start_deadline_s", "request_timeout_s"):
            value = getattr(self, name)
            require(value > 0, f"engine.{name}", value, "must be greater than 0")
        require(
            self.warmup_requests >= 0,
            "engine.warmup_requests",
            self.warmup_requests,
            "must be 0 or more",
        )
        require(
            self.bank is not None or not self.length_forced,
            "engine.length_forced",
            True,
            "needs the lengths of a response bank: engine.bank",
        )

    def create(self, corpus: Corpus, logs: Path | None = None) -> RunningVllm:
        """Make the engine; its server's log goes into the folder `logs`."""
        bank = None if self.bank is None else self.bank.open(corpus)
        return RunningVllm(self, bank, logs)

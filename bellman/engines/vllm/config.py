"""Configuration of a vLLM server of our own: `engine=vllm`, `engine=vllm_cpu`."""

from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from bellman.corpus.base import Corpus
from bellman.engines.openai.engine import OURS
from bellman.engines.vllm.engine import RunningVllm
from bellman.errors import require
from bellman.schema import Positive, Whole, schema
from bellman.source import Source

OUR_ARGUMENTS = ("model", "served-model-name", "host", "port", "middleware")
"""Arguments of the server that the engine decides."""


@schema
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
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port on this machine; None takes any free one."""
    start_deadline_s: Positive = 1800.0
    """From the start to the first healthy answer: loading and compiling included."""
    warmup_requests: Whole = 8
    """Sent at once before the first episode, with prompts that no schedule holds."""
    request_timeout_s: Positive = 600.0
    """Deadline of a request, from sending it to its last token."""
    sampling: dict[str, Any] = field(default_factory=dict)
    """Further entries of every request's body: temperature, seed, top_p..."""
    length_forced: bool = False
    """Take every answer's number of tokens from `bank`: for a model without real weights."""
    bank: Any = None
    """Configuration of a response bank: for `length_forced`, and for calibrated adaptation."""

    def __post_init__(self) -> None:
        """Check that nothing is given twice, and what several entries must keep together."""
        remedy = "must be given: model=<hub id>, or the folder of scripts/prepare_model.py"
        require(bool(self.model), "model", self.model, remedy)
        for name, value in self.arguments.items():
            ours = name.replace("_", "-") in OUR_ARGUMENTS
            require(not ours, f"arguments.{name}", value, "is set by us")
        for name, value in self.sampling.items():
            require(name not in OURS, f"sampling.{name}", value, "is set by the client")
        has_lengths = self.bank is not None or not self.length_forced
        need = "needs the lengths of a response bank: engine.bank"
        require(has_lengths, "length_forced", self.length_forced, need)

    def create(self, corpus: Corpus, logs: Path | None = None) -> RunningVllm:
        """Make the engine; its server's log goes into the folder `logs`."""
        bank = None if self.bank is None else self.bank.open(corpus)
        return RunningVllm(self, bank, logs)

"""The lengths that a kind of arrivals brings, for measuring the capacity with the same work."""

from typing import Any

from bellman.load.arrivals.servegen import ServeGen
from bellman.load.arrivals.trace import Trace

Lengths = tuple[int | None, int | None]
"""Prompt and output tokens of one request; None: the document's, and what the model says."""


def brings_lengths(arrivals: Any) -> bool:
    """Say whether a kind of arrivals says how long prompts and answers are."""
    return isinstance(arrivals, Trace | ServeGen)


def lengths_of(arrivals: Any, seed: int, repeat: int) -> list[Lengths]:
    """Return the lengths of a trace's requests in order; one (None, None) for other kinds."""
    if not brings_lengths(arrivals):
        return [(None, None)]
    workload = arrivals.workload(seed, repeat)
    prompt_tokens, output_tokens = (
        [None] * len(workload.times_s) if tokens is None else tokens.tolist()
        for tokens in (workload.prompt_tokens, workload.output_tokens)
    )
    return list(zip(prompt_tokens, output_tokens, strict=True))

"""Batches of equal requests on an idle engine: what a performance model of it is fitted to.

The same code runs them on a real engine and on the simulated one.
"""

import asyncio
import random
from dataclasses import dataclass

from bellman.engines.base import Completion, EngineSession, Request

WORDS = ("river", "copper", "silent", "marble", "harbour", "lantern", "meadow", "orchard", "timber")


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests that are sent at once; all answers have the same length."""

    requests: int
    prompt_words: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """What a batch took. Seconds since its requests were sent."""

    prompt_tokens: int
    """Of one request, template included."""
    first_s: float
    """Mean time to the first token."""
    last_s: float
    """Last token of the batch."""


def random_prompt(words: int, seed: str) -> str:
    """Return a prompt of random words, another one for every seed."""
    chosen = random.Random(seed).choices(WORDS, k=words)
    return " ".join(chosen) + "\n\nContinue this list of words."


async def run_batch(
    session: EngineSession, batch: Batch, seed: str, prompt_tokens: int | None = None
) -> BatchTimes:
    """Run a batch on an idle engine; `prompt_tokens` is for an engine that cannot count them."""
    loop = asyncio.get_running_loop()
    start_s = loop.time()

    def request(index: int) -> Request:
        return Request(
            request_id=index,
            document_id="batch",
            prompt=random_prompt(batch.prompt_words, f"{seed}-{index}"),
            asked_words=1,
            max_tokens=batch.output_tokens,
            prompt_tokens=prompt_tokens,
            forced_output_tokens=batch.output_tokens,
        )

    answers: list[Completion] = await asyncio.gather(
        *(session.generate(request(index), lambda _: None) for index in range(batch.requests))
    )
    tokens = [answer.prompt_tokens or prompt_tokens or 0 for answer in answers]
    return BatchTimes(
        prompt_tokens=round(sum(tokens) / len(tokens)),
        first_s=sum(answer.first_token_s for answer in answers) / len(answers) - start_s,
        last_s=max(answer.last_token_s for answer in answers) - start_s,
    )

"""Batches of requests on an idle engine: what a performance model of it is fitted to.

The same code runs them on a real engine and on the simulated one.
"""

import asyncio
import random
from dataclasses import dataclass

from bellman.engines.base import Completion, EngineSession, Request

WORDS = ("river", "copper", "silent", "marble", "harbour", "lantern", "meadow", "orchard", "timber")
GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, modulo 1, fill the unit interval evenly however many they are."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests that are sent at once, with prompts of the same length."""

    requests: int
    prompt_words: int
    output_tokens: int
    """Mean length of the answers."""
    length_spread: float = 0.0
    """Lengths go from 1 - spread to 1 + spread times the mean; 0 for equal ones."""

    def length_tokens(self, index: int) -> int:
        """Return one answer's length: evenly spread, and in no order."""
        place = ((index + 0.5) * GOLDEN) % 1.0
        return max(1, round(self.output_tokens * (1 + self.length_spread * (2 * place - 1))))

    @property
    def longest_tokens(self) -> int:
        """Return the longest answer's length."""
        return max(self.length_tokens(index) for index in range(self.requests))


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
            max_tokens=batch.length_tokens(index),
            prompt_tokens=prompt_tokens,
            forced_output_tokens=batch.length_tokens(index),
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

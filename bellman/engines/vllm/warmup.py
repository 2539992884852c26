"""Warms a server up with prompts that no schedule holds."""

import asyncio

from bellman.engines.base import Request, RequestFailed
from bellman.engines.batches import random_prompt
from bellman.engines.openai.session import OpenAISession
from bellman.errors import RunError

PROMPT_WORDS = 120
OUTPUT_TOKENS = 24


async def warm_up(session: OpenAISession, count: int) -> None:
    """Send one request alone, then `count` at once; raises `RunError` if one fails."""
    try:
        await session.generate(warmup_request(0), lambda _: None)
        await asyncio.gather(
            *(session.generate(warmup_request(index + 1), lambda _: None) for index in range(count))
        )
    except RequestFailed as failure:
        raise RunError(f"a warm-up request of the vLLM server failed: {failure}") from None


def warmup_request(index: int) -> Request:
    """Return a request of random words, another for every index."""
    return Request(
        request_id=-1 - index,
        document_id="warm-up",
        prompt=random_prompt(PROMPT_WORDS, f"warm-up-{index}"),
        asked_words=OUTPUT_TOKENS,
        max_tokens=OUTPUT_TOKENS,
    )

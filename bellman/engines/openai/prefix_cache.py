"""Keeps an episode's prompts from being found in the prefix cache of the one before.

All arms send the same documents. A server that still holds the prompts of the first arm answers the
second one without computing them, and the comparison is of nothing. One way is chosen when a run
attaches to its server, and holds for all its episodes, so that all arms get prompts alike.
"""

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import aiohttp

from bellman.engines.openai.failures import message_of
from bellman.engines.openai.fetch import NoReply, Reply, fetch

Way = Literal["disabled", "cache_salt", "reset", "first line"]
MEANINGS: Mapping[Way, str] = {
    "disabled": "the server keeps no prefix cache",
    "cache_salt": "every request carries its episode's salt as cache_salt",
    "reset": "POST /reset_prefix_cache before every episode",
    "first line": "every prompt begins with a line that is its episode's own",
}

NOT_OFFERED = (401, 403, 404, 405, 501)
"""HTTP statuses that say that there is no such request, now or later."""
RESET_S = 10.0
"""A server whose requests are still ending may refuse the reset; it is asked again for so long."""
RESET_PERIOD_S = 0.2
SALT_RANGE = 10**6


@dataclass(frozen=True)
class CacheState:
    """What an episode does about the prefix cache, and whether it helped."""

    way: str
    salt: str | None = None
    first_line: str = ""
    """What stands before every prompt."""
    entries: Mapping[str, str] = field(default_factory=dict)
    """Further entries of every request's body."""
    invalid_reasons: tuple[str, ...] = ()


UNTOUCHED = CacheState("untouched")
"""Outside of episodes: warm-up, recording."""


class PrefixCache:
    """A server's prefix cache under the way chosen for a run."""

    def __init__(self, pool: aiohttp.ClientSession, root_url: str, way: Way) -> None:
        self.way = way
        self._pool = pool
        self._root_url = root_url
        self._seed = secrets.randbelow(SALT_RANGE)
        self._begun = 0

    def describe(self) -> dict[str, object]:
        """Return the way, in words, and the seed that every episode's salt follows from."""
        salted = self.way in ("cache_salt", "first line")
        return {
            "prefix_cache": self.way,
            "prefix_cache_means": MEANINGS[self.way],
            "prefix_cache_salt_seed": self._seed if salted else None,
        }

    async def begin(self) -> CacheState:
        """Begin an episode."""
        number = self._begun
        self._begun += 1
        if self.way == "disabled":
            return CacheState(self.way)
        if self.way == "reset":
            refusal = await reset(self._pool, self._root_url)
            reasons = () if refusal is None else (not_emptied(refusal),)
            return CacheState(self.way, invalid_reasons=reasons)
        own = salt(self._seed, number)
        if self.way == "cache_salt":
            return CacheState(self.way, own, entries={"cache_salt": own})
        return CacheState(self.way, own, first_line=f"{own}\n\n")


def salt(seed: int, number: int) -> str:
    """Return the salt of a run's n-th episode: nine digits.

    A tokenizer makes as many tokens of one as of another, be it by digits or by threes. The first
    three count the episodes, the fastest digit first: neighbours differ in their first token in
    either case. The last six are the run's, drawn anew each time it attaches: the same run again
    must not find its own prompts of the day before.
    """
    return f"{(seed + number) % 1000:03d}"[::-1] + f"{seed:06d}"


def not_emptied(refusal: str) -> str:
    """Return why an episode is invalid whose prompts the server may have known."""
    return (
        f"the server's prefix cache was not emptied ({refusal}): what an earlier arm computed may "
        "have helped this one; set engine.prefix_cache=salt, or =disabled where there is none"
    )


async def choose(
    pool: aiohttp.ClientSession, root_url: str, wanted: str, known_off: bool
) -> PrefixCache:
    """Choose the way for a run: what is proven before what changes the prompts."""

    async def way() -> Way:
        if wanted == "disabled" or (known_off and wanted == "auto"):
            return "disabled"
        if wanted == "reset":
            return "reset"
        if await takes_cache_salt(pool, root_url):
            return "cache_salt"
        if wanted == "auto" and await reset(pool, root_url) is None:
            return "reset"
        return "first line"

    return PrefixCache(pool, root_url, await way())


async def takes_cache_salt(pool: aiohttp.ClientSession, root_url: str) -> bool:
    """Tell whether the server's own description of its requests has `cache_salt` (vLLM, SGLang)."""
    try:
        value = (await fetch(pool, "GET", f"{root_url}/openapi.json")).json()
    except NoReply:
        return False
    for key in ("components", "schemas", "ChatCompletionRequest", "properties"):
        value = value.get(key) if isinstance(value, dict) else None
    return isinstance(value, dict) and "cache_salt" in value


async def reset(pool: aiohttp.ClientSession, root_url: str) -> str | None:
    """Empty the server's prefix cache; return why it is not emptied, or None when it is."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + RESET_S
    while True:
        try:
            reply = await fetch(pool, "POST", f"{root_url}/reset_prefix_cache")
        except NoReply as error:
            refusal = str(error)
        else:
            if _succeeded(reply):
                return None
            refusal = f"HTTP {reply.status}: {message_of(reply.body) or 'no message'}"
            if reply.status in NOT_OFFERED:
                return refusal
        if loop.time() > deadline_s:
            return refusal
        await asyncio.sleep(RESET_PERIOD_S)


def _succeeded(reply: Reply) -> bool:
    """Tell whether a reset happened: a status alone may hide that requests still held blocks."""
    if reply.status not in (200, 204):
        return False
    value = reply.json()
    if value is None or isinstance(value, str):
        said = reply.body.decode(errors="replace").strip().lower()
        is_page = said.startswith("<")  # of something that answers any path
        return not is_page and not any(word in said for word in ("fail", "not ", "error", "false"))
    if isinstance(value, dict):
        said = str(value.get("status", "")).lower()
        refused = any(value.get(key) is False for key in ("success", "ok", "reset", "result"))
        return not refused and not value.get("error") and "fail" not in said and "noop" not in said
    return value is not False

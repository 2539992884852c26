"""A server's KV cache, from its Prometheus metrics (vLLM's `cache_config_info`)."""

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from bellman.engines.openai.fetch import NoReply, fetch
from bellman.serving.metrics import LONGEST_LINE

CACHE_CONFIG = "vllm:cache_config_info"
LABELS = {"num_gpu_blocks": "kv_blocks", "block_size": "kv_block_size"}
"""Labels of the metric (a CPU's blocks are called GPU blocks, too), and our names."""
LONGEST_NUMBER = 15
"""Digits."""


async def read_kv_cache(pool: aiohttp.ClientSession, root_url: str) -> dict[str, int | bool]:
    """Return `kv_blocks`, `kv_block_size` (tokens) and `prefix_caching`, as far as it says them."""
    try:
        reply = await fetch(pool, "GET", f"{root_url}/metrics")
        return parse_kv_cache(reply.body.decode(errors="replace"))
    except (NoReply, ValueError):
        return {}


def parse_kv_cache(text: str) -> dict[str, int | bool]:
    """Read the text of a `/metrics` endpoint.

    Of several engines the first one's size counts, and whether any of them keeps prefixes.
    Raises ValueError for text that is none.
    """
    lines = [line for line in text.splitlines() if line.startswith(CACHE_CONFIG)]
    if any(len(line) > LONGEST_LINE for line in lines):
        raise ValueError("a line that is too long to be parsed")
    try:
        families = list(text_string_to_metric_families("\n".join(lines) + "\n"))
    except Exception as error:  # the parser promises no kind
        raise ValueError(f"no text of metrics: {error!r:.200}") from None
    engines = [sample.labels for family in families for sample in family.samples]
    found: dict[str, int | bool] = {
        name: int(labels[label])
        for labels in engines[:1]
        for label, name in LABELS.items()
        if is_number(labels.get(label, ""))
    }
    caches = {labels.get("enable_prefix_caching") for labels in engines}
    if caches and caches <= {"True", "False"}:
        found["prefix_caching"] = "True" in caches
    return found


def is_number(label: str) -> bool:
    """Tell whether a label is a plain number of a size that can be one."""
    return label.isascii() and label.isdigit() and len(label) <= LONGEST_NUMBER

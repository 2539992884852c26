"""The size of a server's KV cache, from its Prometheus metrics (vLLM's `cache_config_info`)."""

import asyncio

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from bellman.engines.openai.control import DEADLINE_S

CACHE_CONFIG = "vllm:cache_config_info"
LABELS = {"num_gpu_blocks": "kv_blocks", "block_size": "kv_block_size"}
"""Labels of the metric (a CPU's blocks are called GPU blocks, too), and our names."""


async def read_kv_cache(pool: aiohttp.ClientSession, root_url: str) -> dict[str, int]:
    """Return `kv_blocks` and `kv_block_size` (tokens) as far as the server says them."""
    try:
        async with asyncio.timeout(DEADLINE_S), pool.get(f"{root_url}/metrics") as response:
            return parse_kv_cache(await response.text(errors="replace"))
    except (aiohttp.ClientError, OSError, ValueError):
        return {}


def parse_kv_cache(text: str) -> dict[str, int]:
    """Read the text of a `/metrics` endpoint; of several engines the first one's cache counts."""
    lines = [line for line in text.splitlines() if line.startswith(CACHE_CONFIG)]
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        for sample in family.samples:
            return {
                name: int(sample.labels[label])
                for label, name in LABELS.items()
                if sample.labels.get(label, "").isdigit()
            }
    return {}

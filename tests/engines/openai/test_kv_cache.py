"""The size of the KV cache as vLLM's metrics say it."""

import aiohttp
import pytest

from bellman.engines.openai.kv_cache import parse_kv_cache, read_kv_cache
from tests.servers import raw_server

LINE = (
    'vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",'
    'num_gpu_blocks="5824"} 1.0'
)


def test_reads_the_blocks_of_the_first_engine():
    text = "\n".join(
        [
            "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig",
            "# TYPE vllm:cache_config_info gauge",
            LINE,
            LINE.replace('engine="0"', 'engine="1"').replace("5824", "4000"),
            "# TYPE vllm:num_requests_running gauge",
            'vllm:num_requests_running{engine="0"} 3.0',
        ]
    )
    assert parse_kv_cache(text) == {"kv_blocks": 5824, "kv_block_size": 16}


def test_a_server_that_does_not_say_it_leaves_it_open():
    assert parse_kv_cache("") == {}
    assert parse_kv_cache("vllm:num_requests_running 3.0\n") == {}
    assert parse_kv_cache(LINE.replace('"5824"', '"None"')) == {"kv_block_size": 16}


def test_one_engine_that_keeps_prefixes_is_enough():
    lines = [
        f'vllm:cache_config_info{{enable_prefix_caching="{caches}",engine="{engine}"}} 1.0'
        for engine, caches in enumerate(("False", "True"))
    ]
    assert parse_kv_cache("\n".join(lines)) == {"prefix_caching": True}
    assert parse_kv_cache(lines[0]) == {"prefix_caching": False}
    assert parse_kv_cache("\n".join([lines[0], lines[1].replace("True", "?")])) == {}


@pytest.mark.parametrize("label", ['="x"', 'a="' + '\\"' * 400_000 + '"', '}{"'])
def test_what_no_parser_takes_is_no_traceback(label):
    with pytest.raises(ValueError, match=r"no text of metrics|too long"):
        parse_kv_cache(f'vllm:cache_config_info{{block_size="16", {label}}} 1.0')


async def test_a_server_without_metrics_leaves_it_open():
    async def refuse(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with raw_server(refuse) as url, aiohttp.ClientSession() as pool:
        assert await read_kv_cache(pool, url) == {}
    async with aiohttp.ClientSession() as pool:
        assert await read_kv_cache(pool, url) == {}  # nobody listens there any more

"""A small OpenAI-compatible server with known timing, and with faults on demand.

Run it as a process: `python benchmarks/mock_openai_server.py [--port N] [--middleware PATH]`. It
prints its URL first. `PUT /mock` takes a `Behaviour` as JSON for the requests from then on. Like
vLLM it sets its gauges in the Prometheus registry of its own process and loads ASGI middleware by
import path.
"""

import argparse
import asyncio
import importlib
import json
import re
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import uvicorn
from prometheus_client import Counter, Gauge, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

MODEL = "mock"
BLOCK_CHARACTERS = 32
RUNNING = Gauge("vllm:num_requests_running", "Requests in the batch.")
WAITING = Gauge("vllm:num_requests_waiting", "Requests before the batch.")
KV_USAGE = Gauge("vllm:kv_cache_usage_perc", "Share of the KV cache in use.")
CACHE_LABELS = {"block_size": "16", "num_gpu_blocks": "5824"}
CACHE = Gauge("vllm:cache_config_info", "Size of the KV cache.", list(CACHE_LABELS))
CACHE.labels(**CACHE_LABELS).set(1)
PROMPT_TOKENS = Counter("vllm:prompt_tokens", "Prompt tokens.")
GENERATION_TOKENS = Counter("vllm:generation_tokens", "Output tokens.")
SUCCESS = Counter("vllm:request_success", "Finished requests.", ["finished_reason"])


@dataclass(frozen=True)
class Behaviour:
    """What the server does with a request."""

    ttft_s: float = 0.0
    gap_s: float = 0.0
    """Seconds between two chunks."""
    prefill_s: float = 0.0
    """Seconds to compute a prompt, less the share of it that is in the prefix cache."""
    prefix_caching: bool = False
    resets: int = 0
    """Answer POST /reset_prefix_cache with this status; 0 does not offer it."""
    reset_refusals: int = 0
    """So many resets are answered with 200 and success=false first."""
    takes_cache_salt: bool = False
    reasoning: list[str] = field(default_factory=list)
    """Chunks of reasoning before those of content."""
    reasoning_name: str = "reasoning_content"
    chunks: list[str] = field(default_factory=lambda: ["One", " two", " three", "."])
    obeys: bool = False
    """Write as many words as the prompt's "at most N words" asks for, instead of `chunks`."""
    tokens_per_chunk: int = 1
    places: int = 1000
    """Requests served at once; further ones wait."""
    headers: list[list[str]] = field(default_factory=list)
    """Response headers besides the usual ones."""
    refuse_every: int = 0
    """Answer every n-th request with `refuse_status`; 0 refuses none. `"messages": "refuse"` asks
    for it, too."""
    refuse_status: int = 429
    never_answers: bool = False
    raises: bool = False
    """Raise an exception that no handler knows, before the response starts."""
    usage: bool = True
    done: bool = True
    """Send `[DONE]`."""
    finish_reason: str | None = "stop"
    error_after: int | None = None
    """Send an error object after this many chunks, in the 200 stream."""
    cut_after: int | None = None
    """Break the connection after this many chunks."""
    bytes_per_write: int = 0
    """Write the stream in pieces of so many bytes; 0 writes whole events."""
    newline: str = "\n"
    last_newline: bool = True
    ignores_forced_length: bool = False


class Mock:
    """The server's state: its behaviour and its places."""

    def __init__(self) -> None:
        self.requests = 0
        self.cancelled = 0
        self.behave(Behaviour())

    def behave(self, behaviour: Behaviour) -> None:
        """Behave like this from the next request on."""
        self.behaviour = behaviour
        self.cache = PrefixCache()
        self.resets = 0
        self.places = asyncio.Semaphore(behaviour.places)
        self.requests = 0
        self.cancelled = 0

    async def configure(self, request: Request) -> Response:
        """PUT /mock."""
        self.behave(replace(Behaviour(), **await request.json()))
        return Response()

    async def counts(self, request: Request) -> Response:
        """GET /mock: requests seen, and those whose client went away."""
        counts = {"requests": self.requests, "cancelled": self.cancelled, "resets": self.resets}
        return JSONResponse(counts)

    async def reset_prefix_cache(self, request: Request) -> Response:
        """POST /reset_prefix_cache."""
        self.resets += 1
        if self.behaviour.resets == 0:
            return Response(status_code=404)
        if self.resets <= self.behaviour.reset_refusals:
            return JSONResponse({"success": False})
        if self.behaviour.resets == 200:
            self.cache = PrefixCache()
        return Response(status_code=self.behaviour.resets)

    async def openapi(self, request: Request) -> Response:
        """GET /openapi.json: as much of it as tells which entries a request may have."""
        properties = {"cache_salt": {}} if self.behaviour.takes_cache_salt else {}
        schemas = {"ChatCompletionRequest": {"properties": {"messages": {}, **properties}}}
        return JSONResponse({"components": {"schemas": schemas}})

    async def chat(self, request: Request) -> Response:
        """POST /v1/chat/completions."""
        behaviour = self.behaviour
        body = await request.json()
        self.requests += 1
        headers = [(name, value) for name, value in behaviour.headers]
        if behaviour.raises:
            raise RuntimeError("the mock was told to raise")
        if behaviour.never_answers:
            await asyncio.sleep(3600)
        asked = body.get("messages") == "refuse"
        if asked or (behaviour.refuse_every and self.requests % behaviour.refuse_every == 0):
            response: Response = JSONResponse(
                {"error": {"message": "the mock is full", "type": "rate_limit", "code": 429}},
                behaviour.refuse_status,
            )
        elif body.get("stream"):
            response = StreamingResponse(
                self._stream(behaviour, body), media_type="text/event-stream"
            )
        else:
            response = JSONResponse(await self._whole(behaviour, body))
        response.raw_headers += [(name.encode(), value.encode()) for name, value in headers]
        return response

    async def _whole(self, behaviour: Behaviour, body: dict[str, Any]) -> dict[str, Any]:
        texts = [text async for text in self._texts(behaviour, body)]
        message = {"role": "assistant", "content": "".join(texts)}
        choice = {"index": 0, "message": message, "finish_reason": behaviour.finish_reason}
        return _object("chat.completion", [choice], _usage(behaviour, len(texts)))

    async def _stream(self, behaviour: Behaviour, body: dict[str, Any]) -> AsyncIterator[bytes]:
        async for event in self._events(behaviour, body):
            size = behaviour.bytes_per_write or len(event)
            for start in range(0, len(event), size):
                yield event[start : start + size]
                if behaviour.bytes_per_write:
                    await asyncio.sleep(0)

    async def _events(self, behaviour: Behaviour, body: dict[str, Any]) -> AsyncIterator[bytes]:
        def event(value: object) -> bytes:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            return f"data: {text}{behaviour.newline * 2}".encode()

        def chunk(delta: dict[str, str], finish_reason: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
            return event(_object("chat.completion.chunk", [choice], None))

        yield f": a comment{behaviour.newline}".encode() + chunk(
            {"role": "assistant", "content": ""}
        )
        count = 0
        thoughts = len(behaviour.reasoning)
        async for text in self._texts(behaviour, body):
            if count == behaviour.error_after:
                yield event({"error": {"message": "the mock broke", "code": 500}})
                return
            if count == behaviour.cut_after:
                raise ConnectionResetError("the mock cuts the stream")
            count += 1
            yield chunk({behaviour.reasoning_name if count <= thoughts else "content": text})
        yield chunk({}, behaviour.finish_reason)
        if behaviour.usage and (body.get("stream_options") or {}).get("include_usage"):
            yield event(_object("chat.completion.chunk", [], _usage(behaviour, count)))
        if behaviour.done:
            last = event("[DONE]")
            yield last if behaviour.last_newline else last.rstrip()

    def _prefill_s(self, behaviour: Behaviour, body: dict[str, Any]) -> float:
        if not behaviour.prefix_caching:
            return behaviour.prefill_s
        prompt = json.dumps(body.get("messages"))
        salt = str(body.get("cache_salt")) if behaviour.takes_cache_salt else ""
        return behaviour.prefill_s * self.cache.missing(prompt, salt)

    async def _texts(self, behaviour: Behaviour, body: dict[str, Any]) -> AsyncIterator[str]:
        """Yield the answer's pieces at their times, holding one of the server's places."""
        texts = behaviour.chunks
        asked = re.findall(r"at most (\d+) words", json.dumps(body.get("messages")))
        if behaviour.obeys and asked:
            texts = [" word"] * int(asked[-1])
        if "min_tokens" in body and not behaviour.ignores_forced_length:
            texts = [" word"] * (int(body["min_tokens"]) // behaviour.tokens_per_chunk)
        texts = [*behaviour.reasoning, *texts]
        WAITING.inc()
        waiting = True
        try:
            async with self.places:
                WAITING.dec()
                waiting = False
                with RUNNING.track_inprogress():
                    await asyncio.sleep(behaviour.ttft_s + self._prefill_s(behaviour, body))
                    for index, text in enumerate(texts):
                        if index:
                            await asyncio.sleep(behaviour.gap_s)
                        yield text
                        GENERATION_TOKENS.inc(behaviour.tokens_per_chunk)
            PROMPT_TOKENS.inc(7)
            SUCCESS.labels("stop").inc()
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled += 1
            raise
        finally:
            if waiting:
                WAITING.dec()


class PrefixCache:
    """Remembers prompts by their prefixes, in blocks, as vLLM does."""

    def __init__(self) -> None:
        self._blocks: set[str] = set()

    def missing(self, prompt: str, salt: str) -> float:
        """Return the share of a prompt that is not cached, and cache it."""
        ends = range(BLOCK_CHARACTERS, len(prompt) + BLOCK_CHARACTERS, BLOCK_CHARACTERS)
        blocks = [f"{salt}/{prompt[:end]}" for end in ends]
        found = sum(block in self._blocks for block in blocks)
        self._blocks.update(blocks)
        return 1 - found / max(1, len(blocks))


def _object(kind: str, choices: list[dict[str, Any]], usage: object) -> dict[str, Any]:
    return {
        "id": "chatcmpl-mock",
        "object": kind,
        "created": 0,
        "model": MODEL,
        "choices": choices,
        "usage": usage,
    }


def _usage(behaviour: Behaviour, chunks: int) -> dict[str, int]:
    tokens = chunks * behaviour.tokens_per_chunk
    return {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": 7 + tokens}


async def models(request: Request) -> Response:
    """GET /v1/models."""
    return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model"}]})


async def metrics(request: Request) -> Response:
    """GET /metrics."""
    return Response(generate_latest(), media_type="text/plain")


async def health(request: Request) -> Response:
    """GET /health."""
    return Response()


def build_app(middleware: list[str]) -> Starlette:
    """Build the app; middleware classes are named by import path, the last is outermost."""
    mock = Mock()
    app = Starlette(
        routes=[
            Route("/v1/chat/completions", mock.chat, methods=["POST"]),
            Route("/v1/models", models),
            Route("/openapi.json", mock.openapi),
            Route("/reset_prefix_cache", mock.reset_prefix_cache, methods=["POST"]),
            Route("/metrics", metrics),
            Route("/health", health),
            Route("/mock", mock.configure, methods=["PUT"]),
            Route("/mock", mock.counts, methods=["GET"]),
        ]
    )
    for path in middleware:
        module, _, name = path.rpartition(".")
        app.add_middleware(getattr(importlib.import_module(module), name))
    return app


def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--middleware", action="append", default=[])
    arguments = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", arguments.port))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # small writes go at once
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(
        build_app(arguments.middleware), log_level="critical", timeout_graceful_shutdown=1
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()

"""A server of OpenAI's three ways to generate, whose answers are the requests that it got.

The request's own headers say what to answer: `x-give` the values of the congestion header, as a
JSON list, and `x-status` the status. It prints its URL first.
"""

import json
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from bellman.signal import HEADER


async def chat(request: Request) -> Response:
    body = await request.json()
    text = json.dumps(body)
    choice = {"index": 0, "finish_reason": "stop"}
    whole = {**choice, "message": {"role": "assistant", "content": text}}
    parts = [{**choice, "delta": {"content": piece}} for piece in (text[:5], text[5:])]
    chunks = [_object("chat.completion.chunk", part) for part in parts]
    return _answer(request, body, _object("chat.completion", whole), chunks)


async def completions(request: Request) -> Response:
    body = await request.json()
    choice = {"index": 0, "finish_reason": "stop", "text": json.dumps(body)}
    completion = _object("text_completion", choice)
    return _answer(request, body, completion, [completion])


async def responses(request: Request) -> Response:
    body = await request.json()
    text = {"type": "output_text", "text": json.dumps(body), "annotations": []}
    message = {"id": "m", "type": "message", "role": "assistant", "status": "completed"}
    response = {"id": "r", "object": "response", "created_at": 0, "model": "echo", "tools": []}
    whole = {**response, "status": "completed", "output": [{**message, "content": [text]}]}
    place = {"output_index": 0, "item_id": "m", "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "output": []}},
        {"type": "response.output_item.added", **place, "item": {**message, "content": []}},
        {"type": "response.content_part.added", **place, "part": {**text, "text": ""}},
        {"type": "response.output_text.delta", **place, "delta": text["text"], "logprobs": []},
        {"type": "response.completed", "response": whole},
    ]
    return _answer(request, body, whole, events)


async def models(request: Request) -> Response:
    return _answer(request, {}, {"object": "list", "data": [{"id": "echo", "object": "model"}]}, [])


def _object(kind: str, choice: dict[str, Any]) -> dict[str, Any]:
    return {"id": "e", "object": kind, "created": 0, "model": "echo", "choices": [choice]}


def _answer(
    request: Request, body: dict[str, Any], whole: dict[str, Any], events: list[dict[str, Any]]
) -> Response:
    status = int(request.headers.get("x-status", "200"))
    response: Response
    if status != 200:
        response = JSONResponse({"error": {"message": "as asked"}}, status)
    elif body.get("stream"):
        response = StreamingResponse(_stream(events), media_type="text/event-stream")
    else:
        response = JSONResponse(whole)
    given = json.loads(request.headers.get("x-give", "[]"))
    response.raw_headers += [(HEADER.encode(), value.encode()) for value in given]
    return response


def _stream(events: list[dict[str, Any]]) -> Iterator[str]:
    for number, event in enumerate(events):
        name = f"event: {event['type']}\n" if "type" in event else ""
        yield f"{name}data: {json.dumps({**event, 'sequence_number': number})}\n\n"
    yield "data: [DONE]\n\n"


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    routes = [
        Route("/v1/chat/completions", chat, methods=["POST"]),
        Route("/v1/completions", completions, methods=["POST"]),
        Route("/v1/responses", responses, methods=["POST"]),
        Route("/v1/models", models),
    ]
    config = uvicorn.Config(Starlette(routes=routes), log_level="critical")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()

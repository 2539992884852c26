"""The client's side of `/bellman/congestion` and `/bellman/control`."""

import asyncio
from dataclasses import asdict, fields
from typing import Any

import aiohttp

from bellman.engines.base import Control, ServerState
from bellman.engines.openai.failures import message_of
from bellman.errors import RunError
from bellman.sensing.observation import Observation

DEADLINE_S = 10.0
"""A control request that takes longer has failed."""


def control_node(control: Control) -> dict[str, Any]:
    """Return the JSON that PUT /bellman/control and BELLMAN_CONTROL take."""
    return {
        "controller": _node(control.controller),
        "admission": _node(control.admission),
        "period_s": control.period_s,
    }


async def put_control(pool: aiohttp.ClientSession, root_url: str, control: Control) -> None:
    """Switch the server's law and admission, and restart them; raises `RunError`."""
    url = f"{root_url}/bellman/control"
    try:
        async with (
            asyncio.timeout(DEADLINE_S),
            pool.put(url, json=control_node(control)) as response,
        ):
            status, body = response.status, await response.read()
    except (aiohttp.ClientError, OSError) as error:
        raise RunError(f"cannot switch the control law at {url}: {error}") from None
    if status != 200:
        raise RunError(f"cannot switch the control law at {url}: HTTP {status}: {message_of(body)}")


async def read_state(pool: aiohttp.ClientSession, root_url: str) -> ServerState | None:
    """Read GET /bellman/congestion; None where there is no such answer."""
    try:
        async with (
            asyncio.timeout(DEADLINE_S),
            pool.get(f"{root_url}/bellman/congestion") as response,
        ):
            value = await response.json() if response.status == 200 else None
    except (aiohttp.ClientError, OSError, ValueError):
        return None
    return _state(value) if isinstance(value, dict) and "level" in value else None


def _state(value: dict[str, Any]) -> ServerState:
    names = {field.name for field in fields(Observation)}
    observation = value.get("observation")
    return ServerState(
        observation=Observation(**{k: v for k, v in observation.items() if k in names})
        if isinstance(observation, dict)
        else None,
        level=value["level"],
        level_age_s=value.get("age_s"),
    )


def _node(variant: Any) -> dict[str, Any]:
    kind = type(variant)
    return {"_target_": f"{kind.__module__}.{kind.__qualname__}", **asdict(variant)}

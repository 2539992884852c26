"""The client's side of `/bellman/congestion` and `/bellman/control`."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any

import aiohttp

from bellman.engines.base import Control, ServerState
from bellman.engines.openai.failures import message_of
from bellman.engines.openai.fetch import NoReply, fetch
from bellman.errors import RunError
from bellman.foreign_text import printable
from bellman.sensing.numbers import amount, count, share
from bellman.sensing.observation import Observation

LARGEST_STATE_BYTES = 2**20
"""A longer answer is no state."""
LONGEST_LEVEL = 80
"""Characters of a refused level that are shown."""


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
        reply = await fetch(pool, "PUT", url, control_node(control))
    except NoReply as error:
        raise RunError(f"cannot switch the control law at {url}: {error}") from None
    if reply.status != 200:
        message = message_of(reply.body)
        raise RunError(f"cannot switch the control law at {url}: HTTP {reply.status}: {message}")


async def read_state(pool: aiohttp.ClientSession, root_url: str) -> ServerState | None:
    """Read GET /bellman/congestion; None where there is no such answer.

    Numbers out of their range are not believed: a level that is none is handed on as refused, an
    age or an observation is then None.
    """
    try:
        url = f"{root_url}/bellman/congestion"
        reply = await fetch(pool, "GET", url, most_bytes=LARGEST_STATE_BYTES)
    except NoReply:
        return None
    value = reply.json() if reply.status == 200 else None
    return _state(value) if isinstance(value, dict) and "level" in value else None


def _state(value: dict[str, Any]) -> ServerState:
    level, age_s = value["level"], value.get("age_s")
    checked = _checked(share, level)
    refused = level is not None and checked is None
    return ServerState(
        observation=_observation(value.get("observation")),
        level=checked,
        level_age_s=_checked(amount, age_s),
        refused_level=printable(json.dumps(level), LONGEST_LEVEL) if refused else None,
    )


def _observation(value: object) -> Observation | None:
    """Return the observation in a JSON object, or None where one of its numbers is none."""
    if not isinstance(value, dict):
        return None
    checks: dict[str, Callable[[object], Any]] = {
        "time_s": amount,
        "kv_usage": share,
        "outstanding_tokens": amount,
        "oldest_waiting_s": amount,
        "queue_delay_sum_s": amount,
        "ttft_sum_s": amount,
        "e2e_sum_s": amount,
    }
    try:
        return Observation(
            **{
                field.name: checks.get(field.name, count)(value[field.name])
                for field in fields(Observation)
                if value.get(field.name) is not None
            }
        )
    except (ValueError, TypeError):  # TypeError: a load without its running or waiting requests
        return None


def _checked(check: Callable[[object], float], value: object) -> float | None:
    with suppress(ValueError):
        return check(value)
    return None


def _node(variant: Any) -> dict[str, Any]:
    kind = type(variant)
    values = {entry.name: getattr(variant, entry.name) for entry in fields(variant) if entry.init}
    parts = {name: _node(value) for name, value in values.items() if is_dataclass(value)}
    return {"_target_": f"{kind.__module__}.{kind.__qualname__}", **values, **parts}

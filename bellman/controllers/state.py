"""The state of a law as JSON, so that another process goes on from it."""

from typing import Any

from pydantic import TypeAdapter, ValidationError

from bellman.controllers.base import Controller


def write_state(state: Any) -> str:
    """Return a state as JSON."""
    return TypeAdapter(type(state)).dump_json(state).decode()


def read_state(controller: Controller, text: str) -> Any:
    """Return the state that `write_state` wrote, or the law's start where it is no state of it."""
    start = controller.start()
    try:
        return TypeAdapter(type(start)).validate_json(text)
    except ValidationError:
        return start

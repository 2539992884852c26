"""What an engine is measured under by itself: no law, and nothing is refused."""

from collections.abc import Mapping
from typing import Any

from bellman.admission.accept_all import AcceptAll
from bellman.controllers.none import NoControl
from bellman.engines.base import Control


def no_control(values: Mapping[str, Any]) -> Control:
    """Return the server's half of an arm that does nothing; `values` are an episode's entries."""
    return Control(NoControl(), AcceptAll(), values["signal"]["period_s"])

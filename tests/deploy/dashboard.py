"""What the Grafana dashboard asks Prometheus for."""

import json
import re
from pathlib import Path
from typing import Any

COMPOSE = Path(__file__).parents[2] / "deploy" / "compose"
DASHBOARD: dict[str, Any] = json.loads((COMPOSE / "grafana" / "signal.json").read_text())


def expressions() -> dict[str, list[str]]:
    """Return the PromQL of each panel, by its title; Grafana's own variables are filled in."""
    return {
        panel["title"]: [
            target["expr"].replace("$__rate_interval", "1m") for target in panel["targets"]
        ]
        for panel in DASHBOARD["panels"]
    }


def names() -> set[str]:
    """Return the names of all samples that the panels use."""
    text = " ".join(text for texts in expressions().values() for text in texts)
    return set(re.findall(r"\bbellman_\w+", text))

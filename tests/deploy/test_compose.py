"""The compose file, its Prometheus and its dashboard, as far as they go without Docker."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellman.gateway.arguments import control, read_arguments
from bellman.store.open import open_store
from tests.deploy.dashboard import COMPOSE, DASHBOARD, expressions

ROOT = COMPOSE.parents[1]
SERVICES: dict[str, Any] = yaml.safe_load((COMPOSE / "compose.yaml").read_text())["services"]


def test_the_gateways_understand_their_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gateway-1", "gateway-2"):
        command = " ".join(SERVICES[name]["command"])
        filled = re.sub(r"\$\{UPSTREAM:\?[^}]*\}", "http://server:8000", command)
        filled = filled.replace("${ARM:-bellman}", "bellman")
        monkeypatch.setattr(sys, "argv", ["gateway", *filled.split()])
        arguments = read_arguments(None)
        assert [upstream.endpoint_id for upstream in arguments.upstreams] == ["main"]
        assert arguments.store is not None and open_store(arguments.store, 1.0)
        assert control(arguments.controller).period_s > 0
        store = SERVICES[arguments.store.removeprefix("redis://").partition(":")[0]]
        assert store["image"].startswith("redis:")


def test_every_file_that_is_mounted_or_copied_is_there() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            assert (COMPOSE / volume.partition(":")[0]).is_file(), volume
    dockerfile = ROOT / SERVICES["gateway-1"]["build"]["dockerfile"]
    for line in dockerfile.read_text().splitlines():
        if line.startswith("COPY "):
            assert all((ROOT / path).exists() for path in line.split()[1:-1]), line


def test_prometheus_scrapes_the_gateways_own_metrics() -> None:
    (job,) = yaml.safe_load((COMPOSE / "prometheus.yml").read_text())["scrape_configs"]
    assert job["metrics_path"] == "/bellman/metrics"
    targets = job["static_configs"][0]["targets"]
    assert targets == [f"{name}:8001" for name in SERVICES if name.startswith("gateway-")]


def test_the_dashboard_shows_level_queue_latency_and_energy() -> None:
    assert {"Congestion level", "Queue", "Latency", "Power"} <= expressions().keys()
    places = [tuple(panel["gridPos"].values()) for panel in DASHBOARD["panels"]]
    assert len(set(places)) == len(places)
    for panel in DASHBOARD["panels"]:
        assert panel["description"] and panel["fieldConfig"]["defaults"]["unit"], panel["title"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool (Debian's prometheus)")
def test_promtool_takes_the_configuration_and_every_expression(tmp_path: Path) -> None:
    promtool("check", "config", str(COMPOSE / "prometheus.yml"))
    rules = [
        {"record": "panel:expression", "labels": {"panel": title}, "expr": expression}
        for title, found in expressions().items()
        for expression in found
    ]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", str(file))


def promtool(*arguments: str) -> None:
    """Run promtool; it must accept what it is given."""
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

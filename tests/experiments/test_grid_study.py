"""A grid and the uncertainty study: every point is the comparison that it would be alone."""

import json
from pathlib import Path

import pandas as pd
import pytest
from omegaconf import OmegaConf
from rich.console import Console

from analysis.present import present
from bellman.errors import ConfigError
from bellman.settings import read_settings
from experiments.execute import execute
from tests.experiments.conftest import SMALL, read_config

SHORT = (
    "repeats=1",
    "arrivals.congested_s=30",
    "arrivals.recovery_s=10",
    "capacity.warmup_s=30",
    "capacity.duration_s=20",
)
UNCERTAIN = ("experiment=simulator_uncertainty", *SMALL, *SHORT)
SLOWER = 1.2


def claims_of(folder: Path) -> list[dict[str, object]]:
    return json.loads((folder / "claims.json").read_text())["claims"]


def shown(folder: Path) -> str:
    console = Console(record=True, width=200)
    present(folder, console, make=False)
    return console.export_text()


def run_uncertainty(folder: Path, factors: dict[str, list[float]]) -> Path:
    config = read_config(*UNCERTAIN, f"folder={folder}")
    config.study.factors = OmegaConf.create(factors)
    return execute(config, Console(quiet=True), draw=False)


def test_a_point_of_a_grid_has_the_claims_of_the_run_that_it_would_be_alone(tmp_path, run_small):
    axes = "study.axes={arrivals.overload: [1.1, 1.6]}"
    config = read_config(*SMALL, *SHORT, f"folder={tmp_path / 'grid'}", "study=grid", axes)
    folder = execute(config, Console(quiet=True))
    found = json.loads((folder / "grid.json").read_text())
    assert [point["axes"] for point in found["points"]] == [
        {"arrivals.overload": 1.1},
        {"arrivals.overload": 1.6},
    ]
    alone = claims_of(run_small("arrivals.overload=1.6", *SHORT))
    assert found["points"][1]["claims"] == alone
    assert found["points"][0]["claims"] != alone
    rows = pd.read_csv(folder / "grid.csv")
    served = next(claim for claim in alone if claim["claim"] == "requests served")
    assert rows.loc[1, "requests served"] == pytest.approx(served["estimate"])
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".pdf", ".png", ".txt"}
    assert found["prefix_caching"] == "off"
    assert set(rows["prefix caching"]) == {"off"}
    assert "prefix caching off" in shown(folder)


def test_one_coefficient_is_changed_and_nothing_else():
    settings = read_settings(read_config(*UNCERTAIN))
    points = settings.study.points(settings)
    assert points[0].axes == {"coefficient": "as fitted", "factor": 1.0}
    assert points[0].settings(settings).engine == settings.engine
    (found,) = [
        one for one in points if one.axes == {"coefficient": "time.token_ms", "factor": 1.1}
    ]
    fitted, changed = settings.engine.profile, found.settings(settings).engine.profile
    assert changed.time.token_ms == pytest.approx(1.1 * fitted.time.token_ms)
    assert changed.energy == fitted.energy
    assert changed.time.pair_ms == fitted.time.pair_ms


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ({"time.speed": [1.1]}, r"study\.factors=time\.speed: must be"),
        ({"fitted.sequences": [1.1]}, r"study\.factors=fitted\.sequences: must be"),
        ({"time.token_ms": []}, r"study\.factors\.time\.token_ms="),
        ({}, r"study\.factors="),
    ],
)
def test_unknown_coefficients_are_refused(tmp_path, factors, message):
    with pytest.raises(ConfigError, match=message):
        run_uncertainty(tmp_path / "run", factors)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_study_says_what_a_coefficient_does_to_the_claims(tmp_path, run_small):
    folder = run_uncertainty(tmp_path / "run", {"time.token_ms": [SLOWER], "energy.idle_w": [2.0]})
    found = json.loads((folder / "uncertainty.json").read_text())
    by_change = {(one["coefficient"], one["factor"]): one["claims"] for one in found["results"]}
    as_fitted = by_change["as fitted", 1.0]
    alone = {claim["claim"]: claim["estimate"] for claim in claims_of(run_small(*SHORT))}
    assert {name: as_fitted[name] for name in alone} == alone
    token_ms = read_settings(read_config()).engine.profile.time.token_ms
    slower = run_small(f"engine.profile.time.token_ms={SLOWER * token_ms}", *SHORT)
    served = next(claim for claim in claims_of(slower) if claim["claim"] == "requests served")
    assert by_change["time.token_ms", SLOWER]["requests served"] == served["estimate"]
    # Idle watts are a matter of energy alone.
    assert found["prefix_caching"] == "off"
    assert "prefix caching off" in shown(folder)
    idle = by_change["energy.idle_w", 2.0]
    assert idle["end-to-end latency"] == as_fitted["end-to-end latency"]
    assert idle["energy: whole episode"] != as_fitted["energy: whole episode"]

"""Which parts of the installation a short run has seen at work, from what it left in its folder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis import read
from analysis.plan import read_plan


@dataclass(frozen=True)
class Check:
    """One part: what was seen of it, and whether that is what a working one leaves."""

    part: str
    seen: str
    works: bool


def checks(folder: Path) -> list[Check]:
    """Return a check for every part."""
    summary = read.json_file(folder / "summary.json", {"arms": {}})
    return [look(folder, summary) for look in CHECKS]


def _episodes(folder: Path, summary: dict[str, Any]) -> Check:
    cells = read_plan(folder)
    done = sum(cell.content is not None for cell in cells)
    return Check(
        "engine and executor",
        f"{done} of {len(cells)} planned pieces ran to their ends",
        0 < done == len(cells),
    )


def _requests(folder: Path, summary: dict[str, Any]) -> Check:
    offered = {arm: values["offered"] or 0 for arm, values in summary["arms"].items()}
    silent = [arm for arm, values in summary["arms"].items() if not values["completed"]]
    seen = f"{sum(offered.values()):,} requests under {len(offered)} arms"
    if silent:
        seen += f"; none answered under {', '.join(silent)}"
    return Check("load and application", seen, bool(offered) and not silent)


def _signal(folder: Path, summary: dict[str, Any]) -> Check:
    episodes = read.json_file(folder / "episodes.json", [])
    received = sum(episode["signals_received"] for episode in episodes)
    malformed = sum(episode["signals_malformed"] for episode in episodes)
    seen = f"{received:,} levels received, {malformed} malformed"
    return Check("congestion signal", seen, received > 0 and malformed == 0)


def _shortened(folder: Path, summary: dict[str, Any]) -> Check:
    budgets = {
        arm: values["phases"]["congested"]["word_budget_mean"]
        for arm, values in summary["arms"].items()
        if "congested" in values["phases"]
    }
    known = {arm: words for arm, words in budgets.items() if words is not None}
    baseline = known.get(summary.get("baseline", ""))
    shorter = [arm for arm, words in known.items() if baseline is not None and words < baseline]
    seen = f"{len(shorter)} arms asked for fewer words under congestion than the baseline"
    return Check("control laws and adaptations", seen, bool(shorter))


def _energy(folder: Path, summary: dict[str, Any]) -> Check:
    windows = read.json_file(folder / "energy.json", {}).get("windows") or []
    read_in = sum(window["energy_j"] is not None for window in windows)
    seen = f"joules of {read_in} of {len(windows)} windows"
    return Check("energy meter", seen, 0 < read_in == len(windows))


def _quality(folder: Path, summary: dict[str, Any]) -> Check:
    texts = read.frame(folder / "texts.parquet")
    scores = read.frame(folder / "quality.parquet")
    seen = f"{len(scores)} of {len(texts)} distinct answers scored"
    return Check("quality (ROUGE)", seen, 0 < len(texts) <= len(scores))


def _claims(folder: Path, summary: dict[str, Any]) -> Check:
    claims = read.json_file(folder / "claims.json", {}).get("claims") or []
    estimated = sum(claim["estimate"] is not None for claim in claims)
    seen = f"{estimated} of {len(claims)} estimates made"
    return Check("claims", seen, 0 < estimated == len(claims))


def _pages(folder: Path, summary: dict[str, Any]) -> Check:
    figures = sorted((folder / "figures").glob("*.svg"))
    report = folder / "report.html"
    seen = f"{len(figures)} figures, {'a' if report.exists() else 'no'} report.html"
    return Check("figures and report", seen, bool(figures) and report.exists())


CHECKS: Sequence[Callable[[Path, dict[str, Any]], Check]] = (
    _episodes,
    _requests,
    _signal,
    _shortened,
    _energy,
    _quality,
    _claims,
    _pages,
)

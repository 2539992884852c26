"""What a finished uncertainty study shows: the claims' range, and what moves them most."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from analysis import read
from analysis.grid.results import write_results
from analysis.plain import add_row, plain_table
from analysis.prefix_caching import in_words
from bellman.errors import RunError
from bellman.records import write_json

UNCERTAINTY = "uncertainty.json"

CLAIMS = {
    "end-to-end latency": "e2e latency, times lower",
    "energy": "energy less, share",
    "energy: per request": "energy a request less, share",
    "requests served": "requests served more, share",
}
"""What is shown, of all that uncertainty.json has."""
AS_IT_IS = "as fitted"
"""The point that has the profile unchanged."""


@dataclass(frozen=True)
class Range:
    """What one coefficient does to one claim."""

    coefficient: str
    low: float
    high: float
    factors: tuple[float, ...]
    unknown: tuple[float, ...] = ()
    """Factors with which the claim has no estimate: the range is over the others."""

    @property
    def width(self) -> float:
        """How far the claim moves."""
        return self.high - self.low


def tornado(folder: Path, console: Console, *, make: bool, draw: bool) -> None:
    """Print the ranges; with `make`, first write uncertainty.json and, by `draw`, the figure."""
    if make:
        write_json(summary(write_results(folder), read_treatment(folder)), folder / UNCERTAINTY)
    study = read.json_file(folder / UNCERTAINTY, {})
    if make and draw:
        draw_figure(study, folder)
    console.print(in_words(study.get("prefix_caching")), markup=False)
    for claim in CLAIMS:
        console.print(claim_table(study, claim))
    console.print(f"records, figure and uncertainty.json: {folder}", markup=False, soft_wrap=True)


def read_treatment(folder: Path) -> str:
    """Return the arm whose claims are shown: the paper's, else the first that is compared."""
    study = read.json_file(folder / "study.json", {})
    treatments = [name for name in study["arms"] if name != study["baseline"]]
    if not treatments:
        raise RunError(f"{folder}: one arm alone, nothing is compared")
    return str(study["paper_arm"] if study["paper_arm"] in treatments else treatments[0])


def summary(grid: dict[str, Any], treatment: str) -> dict[str, object]:
    """Return coefficient, factor and the estimate of each claim and companion, at every point."""
    results = []
    for point in grid["points"]:
        claims: dict[str, float | None] = {}
        for claim in point["claims"]:
            if claim["treatment"] == treatment:
                claims[claim["claim"]] = claim["estimate"]
                for companion in claim["companions"]:
                    claims[f"{claim['claim']}: {companion['name']}"] = companion["estimate"]
        results.append({**point["axes"], "claims": claims})
    return {
        "source": grid["source"],
        "prefix_caching": grid["prefix_caching"],
        "treatment": treatment,
        "results": results,
    }


def estimates(study: dict[str, object], claim: str) -> list[tuple[str, float, float]]:
    """Return (coefficient, factor, estimate) of every run that has the claim."""
    return [
        (result["coefficient"], result["factor"], result["claims"][claim])
        for result in _results(study)
        if result["claims"].get(claim) is not None
    ]


def unknown(study: dict[str, object], claim: str, coefficient: str) -> tuple[float, ...]:
    """Return the factors of a coefficient with which the claim has no estimate."""
    return tuple(
        result["factor"]
        for result in _results(study)
        if result["coefficient"] == coefficient and result["claims"].get(claim) is None
    )


def _results(study: dict[str, object]) -> list[dict[str, Any]]:
    results = study["results"]
    assert isinstance(results, list)
    return results


def as_fitted(study: dict[str, object], claim: str) -> float | None:
    """Return the claim with the profile as it is."""
    return next((value for name, _, value in estimates(study, claim) if name == AS_IT_IS), None)


def ranges(study: dict[str, object], claim: str) -> list[Range]:
    """Return what each coefficient does to a claim, the widest first."""
    base = as_fitted(study, claim)
    if base is None:
        return []
    found: dict[str, list[tuple[float, float]]] = {}
    for name, factor, value in estimates(study, claim):
        if name != AS_IT_IS:
            found.setdefault(name, []).append((factor, value))
    all_ranges = [
        Range(
            name,
            min(base, *(value for _, value in points)),
            max(base, *(value for _, value in points)),
            tuple(factor for factor, _ in points),
            unknown(study, claim, name),
        )
        for name, points in found.items()
    ]
    return sorted(all_ranges, key=lambda one: -one.width)


def plain(value: float) -> str:
    """Return four digits, none of them of a rounding error."""
    return f"{round(value, 9) + 0.0:.4g}"


def claim_table(study: dict[str, object], claim: str) -> Table:
    """Build the table of one claim."""
    base = as_fitted(study, claim)
    text = "n/a" if base is None else plain(base)
    names = ("coefficient", "factors", "lowest", "highest")
    title = f"{CLAIMS[claim]}: {text} ({study['source']})"
    table = plain_table(title, names, left=("coefficient",))
    for one in ranges(study, claim):
        shown = [f"{factor:g}" for factor in one.factors]
        factors = ", ".join(shown + [f"{factor:g} (n/a)" for factor in one.unknown])
        add_row(table, one.coefficient, factors, plain(one.low), plain(one.high))
    shown_names = {AS_IT_IS, *(one.coefficient for one in ranges(study, claim))}
    for name in dict.fromkeys(result["coefficient"] for result in _results(study)):
        if base is not None and name not in shown_names:
            factors = ", ".join(f"{factor:g}" for factor in unknown(study, claim, name))
            add_row(table, name, factors, "n/a", "n/a")
    return table


def draw_figure(study: dict[str, object], folder: Path) -> None:
    """Draw the tornado."""
    # Imported here: a run that is only shown again does not wait for the drawing library.
    from analysis.figures import style, uncertainty_tornado  # noqa: PLC0415

    target = style.begin(folder)
    style.save(uncertainty_tornado.draw(study), target, "uncertainty_tornado")

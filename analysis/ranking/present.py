"""What many arms show side by side: one table, a ranking, a Pareto front, and equal lengths."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from analysis import read, rows
from analysis.frames import load_run
from analysis.plain import NOT_MEASURED, add_row, number, percent, plain_table, seconds
from analysis.prefix_caching import in_words
from analysis.ranking import best
from analysis.ranking.results import at_equal_length, ranking, shortens
from analysis.summarize import summarize
from bellman.records import write_json

RESULTS = "ranking.json"
OWN = "mpc"
"""Our own best law, which is compared with the other shortening arms at equal quality."""
STATIC = "static_"
"""What the names of the arms begin with that always ask for one length."""
HEADER = ("arm", "SLO", "e2e\nmean", "e2e\np99", "J/good", "lost", "words", "R-1 F1", "recall")
NOTE = (
    "e2e: of the congested phase, the mean of the answered requests, p99 of all (a lost one is "
    "inf); J/good: energy of the episode / requests that met the SLO; R-1: ROUGE-1"
)


def arms(folder: Path, console: Console, *, make: bool, draw: bool) -> None:
    """Print the tables; with `make`, first write ranking.json and, by `draw`, the figures."""
    if make:
        summarize(load_run(folder))
        write_json(results(folder), folder / RESULTS)
    found = read.json_file(folder / RESULTS, {})
    if make and draw:
        # Imported here: a run that is only shown again does not wait for the drawing library.
        from analysis.figures import frontier, ranking_of_arms, style  # noqa: PLC0415

        target = style.begin(folder)
        style.save(ranking_of_arms.draw(found), target, "ranking")
        style.save(frontier.draw(found), target, "frontier")
    for warning in rows.warnings(read.json_file(folder / "summary.json", {})):
        console.print(warning, style="bold red", markup=False)
    console.print(in_words(found.get("prefix_caching")), markup=False)
    console.print(ranking_table(found))
    console.print(NOTE, style="dim", markup=False)
    console.print(flow_table(found))
    for line in found["own_law"]:
        console.print(line, markup=False)
    if found["equal_length"]:
        console.print(equal_length_table(found))
    console.print(f"records, figures and {RESULTS}: {folder}", markup=False, soft_wrap=True)


def results(folder: Path) -> dict[str, Any]:
    """Return the content of ranking.json, from summary.json."""
    summary = read.json_file(folder / "summary.json", {})
    found = ranking(summary)
    # The baseline always asks for the default: the longest of the fixed lengths.
    static = [one["arm"] for one in found if one["arm"].startswith(STATIC)]
    baseline = next(one for one in found if one["arm"] == summary["baseline"])
    static.append(baseline["arm"])
    shorter = [one for one in found if one["arm"] in static or shortens(one, baseline)]
    return {
        "source": summary["source"],
        "response_source": summary["response_source"],
        "prefix_caching": summary["prefix_caching"],
        "baseline": summary["baseline"],
        "repeats": len(summary["repeats"]),
        "invalid_reasons": summary["invalid_reasons"],
        "slo": summary["slo"],
        "arms": found,
        "equal_length": at_equal_length(shorter, static),
        "own_law": best.sentences(found, OWN, summary["baseline"]),
    }


def ranking_table(found: dict[str, Any]) -> Table:
    """Build the table of all arms, the highest SLO attainment first."""
    title = f"every arm by SLO attainment ({found['source']}, {found['repeats']} repeats)"
    table = plain_table(title, HEADER, left=HEADER[:1])
    for one in found["arms"]:
        add_row(
            table,
            one["arm"],
            percent(one["slo_attainment"]),
            seconds(one["congested_e2e_mean_s"]),
            seconds(one["congested_e2e_p99_s"]),
            number(one["energy_j_per_good_request"]),
            percent(one["lost_share"]),
            number(one["words"]),
            score(one["rouge1_f1"]),
            score(one["rouge1_recall"]),
        )
    return table


def flow_table(found: dict[str, Any]) -> Table:
    """Build the table of what became of the intended requests, so that none wins by losing some."""
    title = f"what became of the requests ({found['source']})"
    table = plain_table(title, ("arm", *rows.FLOW, "e2e mean,\nok", "of\nall"), left=("arm",))
    for one in found["arms"]:
        counts = (NOT_MEASURED if one[name] is None else f"{one[name]:,}" for name in rows.FLOW)
        means = (seconds(one[name]) for name in ("e2e_mean_s", "e2e_all_mean_s"))
        add_row(table, one["arm"], *counts, *means)
    return table


def equal_length_table(found: dict[str, Any]) -> Table:
    """Build the table of the arms beside answers of one length with the same mean."""
    title = f"beside fixed lengths with the same mean words ({found['source']})"
    header = ("arm", "words", "SLO", "fixed", "e2e\nmean", "fixed", "J/good", "fixed", "between")
    table = plain_table(title, header, left=("arm", "between"))
    for one in found["equal_length"]:
        own, static = one["own"], one["static"]
        cells = [
            text(part[name])
            for name, text in (
                ("slo_attainment", percent),
                ("congested_e2e_mean_s", seconds),
                ("energy_j_per_good_request", number),
            )
            for part in (own, static)
        ]
        between = ", ".join(name.removeprefix(STATIC) for name in one["between"])
        add_row(table, one["arm"], number(one["words"]), *cells, between)
    return table


def score(found: dict[str, Any]) -> str:
    """Return a mean score."""
    return NOT_MEASURED if found["value"] is None else f"{found['value']:.3f}"

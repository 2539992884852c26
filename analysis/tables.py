"""The tables at the end of a run: the paper's claims, every arm against the baseline, the arms."""

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis import read, rows
from analysis.plain import add_row, plain_table
from analysis.rows import Values
from analysis.together import ENERGY

VERDICT_STYLES = {
    "reproduced": "bold green",
    "partly": "yellow",
    "not reproduced": "bold red",
    "not measured": "dim",
    "no claim": "dim",
}
ARM_TABLES = (
    (*rows.FLOW, "SLO"),
    ("lost", "e2e mean", "ok p50", "ok p99", "mean of all", "e2e p50", "e2e p99"),
    ("GPU energy", "J/request", "J/token", "words", "token F1", "ROUGE-1 F1"),
    ("congested e2e mean", "congested e2e p99", "chunk gap p50", "chunk gap p99"),
)
"""What the terminal shows of the arms, a table each: few enough for 80 columns."""


def print_tables(folder: Path, console: Console) -> None:
    """Print claims and arms of a summarized run folder, and the folder itself."""
    summary = read.json_file(folder / "summary.json", {})
    claims = read.json_file(folder / "claims.json", {})
    for warning in rows.warnings(summary):
        console.print(warning, style="bold red", markup=False)
    nothing = rows.nothing_compared(summary)
    if nothing is not None:
        console.print(nothing, markup=False)
        console.print(f"records: {folder}", markup=False, soft_wrap=True)
        return
    console.print(rows.source_line(summary), style="bold", markup=False)
    papers = rows.papers_claims(claims["claims"])
    if papers:
        console.print(claims_table(papers, summary))
        for claim in papers:
            console.print(f"{claim['claim']}: {rows.notes(claim)}", style="dim", markup=False)
        for line in rows.at_once(claims["together"]):
            console.print(line, markup=False)
    comparisons = rows.comparison_table(claims["claims"], summary)
    if comparisons:
        console.print(comparisons_table(comparisons, summary))
    print_arms(summary, console)
    console.print(
        f"definitions, and more beside each claim: python -m analysis.present {folder} --explain",
        markup=False,
        soft_wrap=True,
    )
    console.print(
        f"figures for a paper: python -m analysis.figures {folder}", markup=False, soft_wrap=True
    )
    console.print(f"records, figures: {folder / 'report.html'}", markup=False, soft_wrap=True)


def print_arms(summary: Values, console: Console) -> None:
    """Print the tables of the arms, and what their quantities are."""
    for names in ARM_TABLES:
        console.print(arms_table(summary, names))
    for note in rows.arm_notes(summary):
        console.print(note, style="dim", markup=False)


def claims_table(claims: list[Values], summary: Values) -> Table:
    """Build the table of the paper's claims, with the other readings of the one about energy."""
    arms = f"{claims[0]['treatment']} against {summary['baseline']}"
    names = ("claim", "paper", "ours [95 % interval]", "verdict")
    table = plain_table(f"claims of the paper: {arms} ({summary['source']})", names, left=names)
    for claim in claims:
        readings = [one for one in claim["companions"] if claim["claim"] == ENERGY]
        name = claim["claim"] + (", window" if claim["claim"] == ENERGY else "")
        _add_claim(table, Text(name, style="bold"), claim["paper"], claim)
        for reading in readings:
            if reading["verdict"] is not None:
                _add_claim(table, Text(f"  {reading['name']}"), "", reading)
    return table


def _add_claim(table: Table, name: Text, paper: str, entry: Values) -> None:
    verdict = Text(entry["verdict"], style=VERDICT_STYLES[entry["verdict"]])
    add_row(table, name, paper, rows.estimate(entry), verdict)


def _two_lines(estimate: str) -> Text:
    """Put the interval under the value: the table must fit a narrow terminal."""
    return Text(estimate.replace(" [", "\n["))


def comparisons_table(comparisons: list[list[str]], summary: Values) -> Table:
    """Build the table of all treatments: a row each, its estimate of each claim."""
    title = f"every arm against {summary['baseline']} ({summary['source']})"
    table = plain_table(title, comparisons[0], left=comparisons[0])
    for arm, *cells in comparisons[1:]:
        add_row(table, arm, *map(_two_lines, cells), end_section=True)
    return table


def arms_table(summary: Values, names: tuple[str, ...]) -> Table:
    """Build a table of the arms, one row each: warm-up left out, complete repeats together."""
    header, *body = rows.arm_table(summary, names)
    table = plain_table(None, header, left=header[:1])
    for row in body:
        add_row(table, *row)
    return table

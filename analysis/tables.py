"""The tables at the end of a run: the claims, and what each arm did."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from analysis import read, rows
from analysis.plain import add_row
from analysis.rows import Values

VERDICT_STYLES = {
    "reproduced": "bold green",
    "partly": "yellow",
    "not reproduced": "bold red",
    "not measured": "dim",
}


def print_tables(folder: Path, console: Console) -> None:
    """Print the claims and the arms of a summarized run folder, and the folder itself."""
    summary = read.json_file(folder / "summary.json", {})
    claims = read.json_file(folder / "claims.json", {})
    for warning in rows.warnings(summary):
        console.print(warning, style="bold red", markup=False)
    if claims["claims"]:
        console.print(claims_table(claims))
        for claim in claims["claims"]:
            console.print(f"{_title(claim)}: {rows.notes(claim)}", style="dim", markup=False)
    console.print(arms_table(summary))
    console.print(f"records, figures and report.html: {folder}", markup=False, soft_wrap=True)


def claims_table(claims: Values) -> Table:
    """Build the claims table: what is claimed and how it is computed, the paper's figure, ours."""
    table = Table(title="claims of the paper", title_justify="left", expand=True)
    table.add_column("claim: definition", ratio=1)
    table.add_column("paper", width=9)
    table.add_column("ours\n[95 % interval]", no_wrap=True)
    table.add_column("verdict", width=10)
    table.add_column("source", no_wrap=True)
    for claim in claims["claims"]:
        source = claim["source"] or rows.NOT_MEASURED
        verdict = Text(claim["verdict"], style=VERDICT_STYLES[claim["verdict"]])
        add_row(
            table,
            _defined(_title(claim), claim["definition"], "bold"),
            claim["paper"],
            _two_lines(rows.estimate(claim)),
            verdict,
            source,
            end_section=not claim["companions"],
        )
        for index, companion in enumerate(claim["companions"]):
            add_row(
                table,
                _defined(f"- {companion['name']}", companion["definition"], ""),
                "",
                _two_lines(rows.estimate(companion)),
                "",
                source,
                style="dim",
                end_section=index == len(claim["companions"]) - 1,
            )
    return table


def _defined(name: str, definition: str, style: str) -> Text:
    return Text.assemble((name, style), f": {definition}")


def _two_lines(estimate: str) -> Text:
    """Put the interval under the value: the table must fit a narrow terminal."""
    return Text(estimate.replace(" [", "\n["))


def arms_table(summary: Values) -> Table:
    """Build the table of the arms, one column each; warm-up left out, complete repeats together."""
    table = Table(
        title=escape(f"arms ({rows.source_line(summary)})"),
        title_justify="left",
        caption=escape(rows.quality_note(summary) or "") or None,
        caption_justify="left",
    )
    table.add_column("", overflow="fold")
    for arm in summary["arms"]:
        table.add_column(Text(arm), justify="right")
    for row in rows.arm_rows(summary):
        add_row(table, *row)
    return table


def _title(claim: Values) -> str:
    return f"{claim['claim']} ({claim['treatment']})"

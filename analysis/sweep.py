"""One table over several runs: what differs between them, and what became of the claims.

`write_sweep` ends a multirun; `python -m analysis.sweep FOLDER...` prints the same table for any
run folders, and writes it as CSV where `--csv FILE` comes first.
"""

import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from analysis import read, rows
from analysis.plain import NOT_MEASURED
from analysis.rows import Values
from bellman.errors import RunError
from bellman.records import write_text
from bellman.redact import redact

SHORT = {"end-to-end latency": "latency", "energy": "energy", "requests served": "served"}
"""Column names of the claims."""
RUN_CHARACTERS = 20
"""Narrowest column of the runs' names and settings; four columns then fit 80 characters."""
OF_ARM = (*rows.FLOW, "slo_attainment", "e2e_mean_s", "e2e_all_mean_s", "e2e_p99_s")
"""What the table says of a treatment besides the claims."""
COLUMNS = {"run", "folder", "treatment", "source", "state", "capacity_rps", *OF_ARM}
"""Columns that are no setting."""


def write_sweep(place: Path, jobs: Sequence[Values], console: Console) -> Path:
    """Write the table of exactly these jobs as table.csv into `place`, and print it.

    Each job has `overrides`, `folder` (None where it failed before it had one) and `error`. One
    that left no summary stands there as not measured, with the reason. Returns the table's path.
    """
    settings = varying([dict(_split(override) for override in job["overrides"]) for job in jobs])
    table = [
        row for job, setting in zip(jobs, settings, strict=True) for row in _job_rows(job, setting)
    ]
    path = place / "table.csv"
    write_csv(table, path)
    console.print(sweep_table(table))
    console.print(f"combined table: {path}", markup=False, soft_wrap=True)
    return path


def combine(folders: Sequence[Path], settings: Sequence[dict[str, str]]) -> list[Values]:
    """Return a row per run and treatment: settings, state, capacity, and each claim's outcome."""
    return [
        row
        for folder, setting in zip(folders, settings, strict=True)
        for row in _rows(folder, setting)
    ]


def varying(settings: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Keep the settings that are not the same in all runs; all of them for a single run."""
    names = list(dict.fromkeys(name for setting in settings for name in setting))
    kept = [
        name
        for name in names
        if len(settings) == 1 or len({setting.get(name) for setting in settings}) > 1
    ]
    return [{name: setting.get(name, NOT_MEASURED) for name in kept} for setting in settings]


def config_settings(folder: Path) -> dict[str, str]:
    """Return the resolved configuration of a run as dotted keys and their text."""
    return dict(_flat(redact(read.config(folder / "config.yaml")), ""))


def write_csv(table: list[Values], path: Path) -> None:
    """Write the rows as CSV; what was not measured is an empty cell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _columns(table), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    write_text(text.getvalue(), path)


def sweep_table(table: list[Values]) -> Table:
    """Build the terminal's table: settings, capacity, and for each claim estimate and verdict."""
    sources = sorted({str(row["source"]) for row in table if row.get("source")})
    shown = Table(
        title=f"sweep ({', '.join(sources) or NOT_MEASURED})", title_justify="left", expand=True
    )
    shown.add_column("run", ratio=1, min_width=RUN_CHARACTERS, overflow="fold")
    for name in SHORT.values():
        shown.add_column(name, no_wrap=True)
    for row in table:
        claims = [_outcome(row, short) for short in SHORT.values()]
        shown.add_row(escape(_described(row)), *claims, end_section=True)
    return shown


def _described(row: Values) -> str:
    """Return the run's settings, treatment, capacity and name, a line each."""
    settings = [name for name in row if name not in COLUMNS and not _is_claim(name)]
    lines = [f"{name}={row[name]}" for name in settings]
    if row.get("treatment"):
        lines.append(f"{row['treatment']}")
    if row.get("capacity_rps") is not None:
        lines.append(f"capacity {float(row['capacity_rps']):.2f} requests/s")
    lines.append(row["run"] if row["state"] == "complete" else f"{row['run']} ({row['state']})")
    return "\n".join(lines)


def _columns(table: list[Values]) -> list[str]:
    return list(dict.fromkeys(name for row in table for name in row))


def _is_claim(column: str) -> bool:
    return column.startswith(tuple(f"{short}_" for short in SHORT.values()))


def _job_rows(job: Values, setting: dict[str, str]) -> list[Values]:
    failure = {} if job["error"] is None else {"state": f"failed: {job['error']}"}
    if job["folder"] is None:
        return [{**setting, "run": NOT_MEASURED, "folder": ""} | failure]
    return [row | failure for row in _rows(Path(job["folder"]), setting)]


def _rows(folder: Path, setting: dict[str, str]) -> list[Values]:
    start: Values = {**setting, "run": folder.name, "folder": str(folder)}
    if not (folder / "summary.json").exists() or not (folder / "claims.json").exists():
        return [start | {"state": "no summary"}]
    summary = read.json_file(folder / "summary.json", {})
    claims = read.json_file(folder / "claims.json", {})["claims"]
    state = summary["cut_short"] or ("invalid" if summary["invalid_reasons"] else "complete")
    start |= {"state": state, "source": summary["source"], "capacity_rps": summary["capacity_rps"]}
    found = []
    for treatment in summary["treatments"]:
        arm = summary["arms"][treatment]
        row = start | {"treatment": treatment} | {name: arm.get(name) for name in OF_ARM}
        for claim in claims:
            if claim["treatment"] == treatment:
                row |= _claim_cells(SHORT[claim["claim"]], claim)
        found.append(row)
    return found or [start]


def _claim_cells(short: str, claim: Values) -> Values:
    return {
        f"{short}_estimate": claim["estimate"],
        f"{short}_low": claim["low"],
        f"{short}_high": claim["high"],
        f"{short}_unit": claim["unit"],
        f"{short}_verdict": claim["verdict"],
    }


def _outcome(row: Values, short: str) -> str:
    if f"{short}_verdict" not in row:
        return NOT_MEASURED
    names = ("estimate", "low", "high", "unit")
    entry = {name: row[f"{short}_{name}"] for name in names}
    text = rows.estimate(entry).replace(" [", "\n[").replace(" (", "\n(")
    return escape(f"{text}\n{row[f'{short}_verdict']}")


def _split(override: str) -> tuple[str, str]:
    name, _, value = override.partition("=")
    return name.lstrip("+~"), value


def _flat(value: Any, prefix: str) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [
            entry
            for key, inner in value.items()
            for entry in _flat(inner, f"{prefix}.{key}" if prefix else str(key))
        ]
    return [(prefix, str(value))]


def main(arguments: list[str]) -> int:
    """Print the table of the run folders given."""
    target = None
    if len(arguments) > 1 and arguments[0] == "--csv":
        target, arguments = Path(arguments[1]), arguments[2:]
    if not arguments or arguments[0].startswith("-"):
        print("usage: python -m analysis.sweep [--csv FILE] FOLDER...", file=sys.stderr)
        return 2
    folders = [Path(argument) for argument in arguments]
    try:
        table = combine(folders, varying([config_settings(folder) for folder in folders]))
    except RunError as error:
        print(error, file=sys.stderr)
        return 1
    if target is not None:
        write_csv(table, target)
    Console().print(sweep_table(table))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

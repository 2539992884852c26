"""What each claim is and what stands beside it: `python -m analysis.present FOLDER --explain`."""

from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from analysis import read, rows
from analysis.rows import Values


def explain(folder: Path, console: Console) -> None:
    """Print the definition of every claim and of all that stands beside it, with the numbers."""
    claims = read.json_file(folder / "claims.json", {}).get("claims") or []
    if not claims:
        console.print(f"{folder}: no claims to explain", markup=False, soft_wrap=True)
    for claim in claims:
        console.print(f"\n{claim['claim']} ({claim['treatment']})", style="bold", markup=False)
        _entry(claim, f"{rows.estimate(claim)}; paper: {claim['paper']}", console)
        for companion in claim["companions"]:
            console.print(f"  {companion['name']}", style="bold", markup=False)
            _entry(companion, rows.estimate(companion), console)


def _entry(entry: Values, numbers: str, console: Console) -> None:
    verdict = "" if entry["verdict"] is None else f"; {entry['verdict']}"
    lines = [f"{numbers}{verdict}", entry["definition"]]
    if entry["sensitive_to"]:
        lines.append(f"sensitive to {entry['sensitive_to']}")
    note = rows.notes(entry)
    if note:
        lines.append(note)
    for line in lines:
        console.print(Padding(Text(line), (0, 0, 0, 4)))

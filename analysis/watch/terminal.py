"""The view in a terminal."""

import time
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from analysis.watch.run import RunWatch
from analysis.watch.view import CellView, Latency, RunView

PERIOD_S = 2.0
UNKNOWN = "n/a"


def show(folder: Path, console: Console) -> None:
    """Show a run until interrupted; where the output is no terminal, once."""
    watch = RunWatch(folder)
    if not console.is_terminal:
        console.print(rendered(watch.look()))
        return
    with Live(rendered(watch.look()), console=console, auto_refresh=False) as live:
        while True:
            time.sleep(PERIOD_S)
            live.update(rendered(watch.look()), refresh=True)


def rendered(view: RunView) -> RenderableType:
    """Return the whole view; text from the folder is taken as text."""
    head = Table.grid(padding=(0, 2))
    for name, value in (
        ("run", f"{view.title} ({view.source})"),
        ("state", view.state),
        ("cells", f"{view.cells_done} of {view.cells_planned} planned so far are done"),
        ("", f"{view.cells_failed} failed or cut" if view.cells_failed else ""),
        ("time left", f"{duration(view.left_s)} ({view.left_how})"),
        ("energy", f"{number(view.energy_j, 0, ' J')} ({view.energy_text})"),
        ("looked at", view.looked_at),
    ):
        if value:
            head.add_row(Text(name, style="dim"), Text(value))
    parts: list[RenderableType] = [head]
    if view.open:
        parts.append(cells_table(view.open))
    notes = [note for cell in view.open for note in (f"{cell.label}: {n}" for n in cell.notes)]
    parts += [Text(f"warning: {warning}", style="yellow") for warning in view.warnings]
    parts += [Text(note, style="dim") for note in (*notes, *view.notes)]
    return Group(*parts)


def cells_table(cells: list[CellView]) -> Table:
    """Build the table of the cells that are not done, a column each."""
    table = Table(show_header=True)
    table.add_column("")
    for cell in cells:
        table.add_column(Text(f"{cell.label}: {cell.state}"))
    columns = [cell_values(cell) for cell in cells]
    for name in columns[0]:
        table.add_row(name, *(Text(column[name]) for column in columns))
    return table


def cell_values(cell: CellView) -> dict[str, str]:
    """Return what is shown of a cell, by name."""
    sample, schedule = cell.sample, cell.schedule
    others = sum(count for status, count in cell.ended.items() if status != "ok")
    return {
        "source": cell.source or UNKNOWN,
        "time": f"{number(sample and sample.time_s, 0)} of "
        f"{number(schedule and schedule.end_s, 0)} s and drain",
        "phase": sample.phase if sample else UNKNOWN,
        "level": number(sample and sample.level, 2),
        "waiting": number(sample and sample.waiting, 0),
        "running": number(sample and sample.running, 0),
        "words asked": number(sample and sample.word_budget, 0),
        "requests ok": f"{cell.ended.get('ok', 0):,} of "
        f"{number(schedule and schedule.requests, 0)}",
        "requests failed": f"{others:,}",
        "p50, p99": f"{_latency(cell.p50_s)}, {_latency(cell.p99_s)}"
        + (f" (last {cell.latencies})" if cell.latencies else ""),
        "energy": f"{number(sample and sample.energy_j, 0, ' J')}, "
        f"{number(sample and sample.power_w, 0, ' W')}",
    }


def duration(seconds: float | None) -> str:
    """Return a time in words."""
    if seconds is None:
        return UNKNOWN
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def number(value: object, digits: int, unit: str = "") -> str:
    """Return a number, or that it is not known."""
    known = isinstance(value, int | float)
    return f"{value:,.{digits}f}{unit}" if known else UNKNOWN


def _latency(value: Latency) -> str:
    return value if isinstance(value, str) else number(value, 1, " s")

"""Writes report.html: claims, tables, figures, configuration and provenance in one page."""

import base64
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, Template, select_autoescape
from omegaconf import OmegaConf

from analysis import figures, read, rows
from analysis.frames import capacity_of
from analysis.page_scripts import order, scripts
from bellman.records import write_text
from bellman.redact import redact

ONE_COLUMN_PT = 300.0
"""A wider figure takes two columns of the page, as in a paper."""


def write(folder: Path) -> Path:
    """Write the report of a summarized and drawn run folder; returns its path.

    The page is self-contained: styles, scripts and pictures inside, and it may fetch nothing.
    """
    folder = Path(folder)
    summary = read.json_file(folder / "summary.json", {})
    claims = read.json_file(folder / "claims.json", {})
    capacity = capacity_of(
        read.json_file(folder / "capacity.json", []), read.json_file(folder / "episodes.json", [])
    )
    page = template().render(
        title=f"{folder.parent.name} / {folder.name}",
        summary=summary,
        warnings=rows.warnings(summary),
        nothing=rows.nothing_compared(summary),
        source_line=rows.source_line(summary),
        claims=rows.papers_claims(claims["claims"]),
        at_once=rows.at_once(claims["together"]),
        comparisons=rows.comparison_table(claims["claims"], summary),
        estimate=rows.estimate,
        notes=rows.notes,
        arm_tables=_cut(rows.arm_table(summary), "e2e mean", "GPU energy", "ROUGE-1 F1"),
        arm_notes=rows.arm_notes(summary),
        phase_header=rows.PHASE_HEADER,
        phase_rows=rows.phase_rows(summary),
        figures=[_picture(path) for path in _pictures(folder / "figures")],
        provenance=_entries(redact(read.json_file(folder / "provenance.json", {}))),
        capacity=_entries(redact(capacity)),
        config=_text(folder / "config.yaml"),
        scripts=scripts(),
        order=order,
    )
    path = folder / "report.html"
    write_text(page, path)
    return path


def template() -> Template:
    """Return the page's template."""
    environment = Environment(
        loader=PackageLoader("analysis", "templates"),
        autoescape=select_autoescape(),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html")


def _cut(table: list[list[str]], *names: str) -> list[list[list[str]]]:
    """Cut a table before some columns: as one, its last columns would be beyond the page's edge."""
    edges = [1, *(table[0].index(name) for name in names), len(table[0])]
    return [[[row[0], *row[begin:end]] for row in table] for begin, end in pairwise(edges)]


def _pictures(folder: Path) -> list[Path]:
    """Return the drawn figures in the report's order, then any other drawing there."""
    names = [module.__name__.rsplit(".", 1)[1] for module in figures.modules()]
    known = [path for name in names for path in _parts(folder, name)]
    return [*known, *sorted(set(folder.glob("*.svg")) - set(known))]


def _parts(folder: Path, name: str) -> list[Path]:
    """Return a figure's files: one, or those of a few arms each."""
    return sorted([*folder.glob(f"{name}.svg"), *folder.glob(f"{name}_[0-9]*.svg")])


def _picture(path: Path) -> dict[str, Any]:
    """Return a drawing as an image, in which no script of a folder that somebody sent can run."""
    content = path.read_bytes()
    data = base64.b64encode(content).decode()
    width = re.search(rb'<svg[^>]*\bwidth="([0-9.]+)pt"', content)
    caption = path.with_suffix(".txt")
    return {
        "name": path.stem.replace("_", " "),
        "wide": width is not None and float(width[1]) > ONE_COLUMN_PT,
        "data": f"data:image/svg+xml;base64,{data}",
        "caption": caption.read_text(encoding="utf-8").strip() if caption.exists() else "",
    }


def _entries(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Flatten nested JSON into dotted keys and their text."""
    if isinstance(value, dict):
        return [
            entry
            for key, inner in value.items()
            for entry in _entries(inner, f"{prefix}.{key}" if prefix else str(key))
        ]
    return [(prefix, value if isinstance(value, str) else json.dumps(value))]


def _text(path: Path) -> str:
    return OmegaConf.to_yaml(redact(read.config(path))) if path.exists() else ""

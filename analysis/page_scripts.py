"""The scripts of a report: kept libraries from packages that bring them, and what uses them.

DataTables (MIT, from `itables`) sorts the tables, d3 (BSD, from `mpld3`) zooms the figures. They
are written into the page, so that it needs no network.
"""

import math
import re
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

from markupsafe import Markup

from analysis.plain import NOT_MEASURED

DATATABLES = ("itables", "itables/html/dt_bundle.js")
D3 = ("mpld3", "mpld3/js/d3.v5.min.js")
OWN = Path(__file__).parent / "templates" / "report.js"


def scripts() -> dict[str, Markup]:
    """Return the text of each script, as it stands between its tags."""
    own = OWN.read_text(encoding="utf-8")
    return {"datatables": library(*DATATABLES), "d3": library(*D3), "own": Markup(own)}


@cache
def library(package: str, path: str) -> Markup:
    """Return a file of an installed package, without importing that.

    What would end the page's script, or begin another, is written as strings may write it.
    """
    text = Path(str(distribution(package).locate_file(path))).read_text(encoding="utf-8")
    return Markup(re.sub(r"<(?=!--|/?script)", r"\\x3C", text, flags=re.IGNORECASE))


def order(cell: str) -> str:
    """Return what a cell of a table is sorted by: its first number, else its text.

    A fall is a negative rise, what was not measured comes first, and what was lost last.
    """
    if cell.startswith(NOT_MEASURED):
        return ""
    if cell.startswith(("inf", "lost")):
        return "1e308"
    number = re.match(r"-?[\d,]+(\.\d+)?(e[+-]?\d+)?", cell)
    if number is None:
        return cell
    value = float(number[0].replace(",", ""))
    sign = -1.0 if re.match(r"\S+ % less", cell) else 1.0
    return repr(sign * value) if math.isfinite(value) else "1e308"

"""The claims at every point of a grid, computed from its records."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.frames import Records
from analysis.prefix_caching import found_in, of_points
from analysis.summarize import claims, jsonable
from bellman.records import write_json

Values = dict[str, Any]
RESULTS = "grid.json"


def results(folder: Path) -> Values:
    """Return axes, source and, for every point, its capacity and claims."""
    records = Records(folder)
    points: list[Values] = [
        {
            "axes": point,
            "capacity_rps": run.capacity.get("capacity_rps"),
            "source": run.source,
            "prefix_caching": found_in(run.episodes),
            "warnings": run.warnings,
        }
        | claims(run)
        for point, run in ((point, records.at(point)) for point in records.points)
    ]
    names = list(dict.fromkeys(name for point in points for name in point["axes"]))
    sources = sorted({point["source"] for point in points})
    return {
        "axes": names,
        "source": " + ".join(sources) or "n/a",
        "prefix_caching": of_points(points),
        "points": points,
    }


def write_results(folder: Path) -> Values:
    """Write grid.json and grid.csv of a gathered run folder; return the former's content."""
    found: Values = jsonable(results(folder))
    write_json(found, folder / RESULTS)
    pd.DataFrame(list(flat(found))).to_csv(folder / "grid.csv", index=False)
    return found


def flat(found: Values) -> Iterator[Values]:
    """Yield a row a point and treatment: axes, capacity, and each claim and companion."""
    for point in found["points"]:
        by_treatment: dict[str, Values] = {}
        for claim in point["claims"]:
            row = by_treatment.setdefault(
                claim["treatment"],
                {**point["axes"], "capacity_rps": point["capacity_rps"], "source": point["source"]}
                | {"prefix caching": point["prefix_caching"]}
                | {"treatment": claim["treatment"], "repeats": len(point["repeats"])},
            )
            row |= {
                f"{claim['claim']}": claim["estimate"],
                f"{claim['claim']} low": claim["low"],
                f"{claim['claim']} high": claim["high"],
                f"{claim['claim']} verdict": claim["verdict"],
            }
            for companion in claim["companions"]:
                name = f"{claim['claim']}: {companion['name']}"
                row[name] = companion["estimate"]
                if companion["verdict"] is not None:
                    row |= {f"{name} {end}": companion[end] for end in ("low", "high", "verdict")}
        yield from by_treatment.values()

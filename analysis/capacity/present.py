"""What a finished capacity experiment shows: tables, figures and result.json, from its folder."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from analysis.capacity.points import ClosedPoint
from analysis.capacity.result import (
    NOT_WAITS,
    by_scale,
    gain,
    highest_goodput,
    invalid,
    littles_verdict,
    result,
    unjudged_at,
)
from analysis.capacity.study import Study, load_study
from analysis.plain import NOT_MEASURED, add_row, plain_table
from analysis.prefix_caching import found_in, in_words
from analysis.rows import good_share
from analysis.summarize import jsonable
from bellman.records import write_json


def capacity(folder: Path, console: Console, *, make: bool, draw: bool) -> None:
    """Print the tables of a capacity run; with `make`, first make everything they come from."""
    found = load_study(folder)
    if make:
        write_json(jsonable(result(found)), folder / "result.json")
    if make and draw:
        draw_figures(found, folder)
    if found.run.cut_short:
        console.print(
            f"{found.run.cut_short} run: rates are of the points that were tried until then",
            style="bold red",
        )
    console.print(in_words(found_in(found.run.episodes)), markup=False)
    console.print(closed_table(found))
    console.print(little_line(found))
    console.print(NOT_WAITS)
    console.print(open_table(found))
    console.print(offered_table(found))
    if len(found.open_by_scale) > 1:
        console.print(scale_table(found))
    for line in invalid(found):
        console.print(f"INVALID {line}", style="bold red", markup=False)
    for line in conclusion(found):
        console.print(line, style="bold", markup=False)
    console.print(f"records, figures and result.json: {folder}", markup=False, soft_wrap=True)


def draw_figures(found: Study, folder: Path) -> None:
    """Draw the figures."""
    # Imported here: a run that is only shown again does not wait for the drawing library.
    from analysis.figures import (  # noqa: PLC0415
        capacity_closed_loop,
        capacity_offered,
        capacity_slo,
        capacity_slo_scale,
        style,
    )

    target = style.begin(folder)
    modules = [capacity_closed_loop] if found.closed else []
    if found.open:
        modules += [capacity_slo, capacity_offered]
    if found.open and len(found.open_by_scale) > 1:
        modules.append(capacity_slo_scale)
    for module in modules:
        style.save(module.draw(found), target, module.__name__.rsplit(".", 1)[1])


def closed_table(found: Study) -> Table:
    """Build the table of the closed loop."""
    names = ("arm", "clients", "throughput/s", "L", "W s", "L off by", "test s")
    table = plain_table(f"closed loop ({found.run.source})", names, left=("arm",))
    for arm in found.run.arms:
        points = found.closed_of(arm)
        for point in points:
            add_row(table, *_closed_row(point), end_section=point is points[-1])
    return table


def _closed_row(point: ClosedPoint) -> list[str]:
    error = point.littles_error
    return [
        point.arm,
        str(point.clients),
        f"{point.throughput_rps:.2f}",
        _number(point.outstanding, ".1f"),
        _number(point.latency_s, ".2f"),
        NOT_MEASURED if error is None else f"{error:+.2%}",
        f"{point.test_length_s:.0f}",
    ]


def little_line(found: Study) -> str:
    """Say whether Little's law holds."""
    verdict = littles_verdict(found)
    if verdict["holds"] is None:
        return "Little's law: n/a (the server does not report its outstanding requests)"
    word = "holds" if verdict["holds"] else "DOES NOT HOLD: do not trust these points"
    checked, points = verdict["points_checked"], verdict["points"]
    where = "" if checked == points else f", at {checked} of {points} points: elsewhere L is n/a"
    return (
        f"Little's law {word}: L against lambda W + edges, each measured apart, within "
        f"{verdict['largest_error']:.2%} (limit {verdict['limit']:.0%}){where}"
    )


def open_table(found: Study) -> Table:
    """Build the table of the open loop: what users wait, and how many of them are served well."""
    names = ("arm", "offer/s", "/cap.", "thru/s", "good/s", "good", "lost", "mean s", "p99 s")
    table = plain_table(
        f"open loop, {found.open_length_s:g} s a point; good: {found.slo.in_words} "
        f"({found.run.source})",
        names,
        left=("arm",),
    )
    for arm in found.run.arms:
        points = found.open_of(arm)
        for point in points:
            add_row(
                table,
                point.arm,
                _number(point.offered_rps, ".2f"),
                _number(relative(point.rate_rps, found.capacity_rps), ".2f"),
                _number(point.throughput_rps, ".2f"),
                _number(point.goodput_rps, ".2f"),
                good_share(point.slo_attainment, point.judged.bounds),
                NOT_MEASURED if point.lost_share is None else f"{100 * point.lost_share:.1f} %",
                _number(point.e2e_mean_s, ".1f"),
                _number(point.e2e_p99_s, ".1f"),
                end_section=point is points[-1],
            )
    return table


def offered_table(found: Study) -> Table:
    """Build the table that says whether the load was what it was meant to be."""
    names = ("arm", "offered/s", "achieved/s", "e2e s", "service s", "lag p99 ms", "load")
    title = f"was it sent as offered? ({found.run.source})"
    table = plain_table(title, names, left=("arm", "load"))
    for arm in found.run.arms:
        points = found.open_of(arm)
        for point in points:
            add_row(
                table,
                point.arm,
                _number(point.offered_rps, ".2f"),
                _number(point.achieved_rps, ".2f"),
                _number(point.e2e_mean_s, ".2f"),
                _number(point.service_mean_s, ".2f"),
                NOT_MEASURED if point.lag_p99_s is None else f"{1e3 * point.lag_p99_s:.2f}",
                "INVALID" if point.invalid_reasons else "valid",
                end_section=point is points[-1],
            )
    return table


def scale_table(found: Study) -> Table:
    """Build the table of the highest good rates under multiples of the limits."""
    arms, treatments = found.run.arms, found.run.treatments
    names = ["x SLO", "ttft s", "tpot s", "e2e s", *(f"{arm} /s" for arm in arms)]
    table = plain_table(
        f"highest rate with {found.slo_attainment:.0%} good, by SLO, "
        f"{found.open_length_s:g} s a point ({found.run.source})",
        [*names, *(f"{arm} gain" for arm in treatments)],
        left=(),
    )
    for scale in found.open_by_scale:
        row = by_scale(found, scale)
        rates, gains, open_ended = row["highest_slo_rate_rps"], row["gain"], row["no_limit_found"]
        add_row(
            table,
            f"{scale:g}",
            *("-" if limit is None else f"{limit:g}" for limit in row["slo"].values()),
            *(at_least(_number(rates[arm], ".2f"), open_ended[arm]) for arm in arms),
            *(at_least(_number(gains[arm], "+.0%"), open_ended[arm]) for arm in treatments),
        )
    return table


def conclusion(found: Study) -> list[str]:
    """Say the capacity, the highest rates under the SLO, and what control adds."""
    source, target = found.run.source, f"{found.slo_attainment:.0%} good"
    if found.capacity_rps is None:
        return [f"capacity without control: {NOT_MEASURED}, its closed loop did not end"]
    exact = ""
    if found.saturated is not None and found.saturated.low_rps is not None:
        low_rps, high_rps = found.saturated.low_rps, found.saturated.high_rps
        exact = f", 95 % interval {low_rps:.2f} to {high_rps:.2f}"
    lines = [
        f"capacity without control: {found.capacity_rps:.2f} requests/s{exact} ({source}); for "
        f"other experiments: arrivals.capacity_rps={found.capacity_rps:.2f}"
    ]
    for arm in found.run.arms:
        rate = found.highest_slo_rate(arm)
        unjudged = unjudged_at(found, arm)
        what = NOT_MEASURED if rate is None else f"{rate:.2f}/s"
        if unjudged is not None:
            what = NOT_MEASURED if rate is None else f">= {what}"
            what += f" ({unjudged})"
        elif rate is None:
            what += ", no rate tried keeps it"
        elif found.no_limit_found(arm):
            what += " (every rate tried was good)"
        goodput = _number(highest_goodput(found, arm), ".2f")
        lines.append(
            f"{arm}: highest rate with {target} {what}, highest goodput {goodput}/s ({source})"
        )
    for arm, more in gain(found).items():
        if found.no_limit_found(found.run.baseline):
            lines.append(f"what {arm} adds: n/a, no limit was found for {found.run.baseline}")
        elif more is not None:
            bound = "at least " if found.no_limit_found(arm) else ""
            lines.append(f"{arm} carries {bound}{more:+.0%} load under the same SLO ({source})")
    return lines


def relative(rate_rps: float, capacity_rps: float | None) -> float | None:
    """Return a rate / the capacity; None where that is not known."""
    return None if capacity_rps is None else rate_rps / capacity_rps


def at_least(text: str, is_bound: bool) -> str:
    """Mark a figure that is only a lower bound."""
    return f">= {text}" if is_bound and text != NOT_MEASURED else text


def _number(value: float | None, form: str) -> str:
    return NOT_MEASURED if value is None else format(value, form)

"""The study's answer as values, for result.json and for a script that reads it."""

from dataclasses import asdict
from typing import Any

from analysis.capacity.points import OpenPoint
from analysis.capacity.study import Study
from analysis.prefix_caching import found_in
from bellman.load.completion_rate import INTERVAL_METHOD

LITTLE_LIMIT = {"simulated": 0.02, "measured": 0.05}
"""How far L and lambda W may be apart."""
NOT_WAITS = (
    "Closed-loop latencies are not what users wait: the number of clients fixes them "
    "(latency = clients / throughput), and users who could not be sent are missing."
)


def result(study: Study) -> dict[str, Any]:
    """Return everything that the study found; shares and fractions in [0, 1], null: not found."""
    arms: dict[str, Any] = {}
    saturated = study.saturated
    for arm in study.run.arms:
        best = study.knee(arm)
        arms[arm] = {
            "knee_clients": best.clients if best else None,
            "highest_throughput_rps": max(
                (point.throughput_rps for point in study.closed_of(arm)), default=None
            ),
            "highest_slo_rate_rps": study.highest_slo_rate(arm),
            "no_limit_found": study.no_limit_found(arm),
            "unjudged": unjudged_at(study, arm),
            "highest_goodput_rps": highest_goodput(study, arm),
            "closed": [
                asdict(point) | {"littles_error": point.littles_error}
                for point in study.closed_of(arm)
            ],
            "open": [_open(point) for point in study.open_of(arm)],
        }
    return {
        "source": study.run.source,
        "prefix_caching": found_in(study.run.episodes),
        "capacity_rps": study.capacity_rps,
        "capacity_clients": None if saturated is None else saturated.clients,
        "capacity_low_rps": None if saturated is None else saturated.low_rps,
        "capacity_high_rps": None if saturated is None else saturated.high_rps,
        "capacity_interval": INTERVAL_METHOD,
        "slo": asdict(study.slo),
        "slo_attainment": study.slo_attainment,
        "littles_law": littles_verdict(study),
        "note": NOT_WAITS,
        "gain": gain(study),
        "slo_scales": [by_scale(study, scale) for scale in study.open_by_scale],
        "invalid_points": invalid(study),
        "arms": arms,
    }


def _open(point: OpenPoint) -> dict[str, Any]:
    judged = point.judged
    return asdict(point) | {
        "judged": asdict(judged) | {"reason": judged.reason},
        "slo_attainment": judged.fraction,
        "slo_attainment_bounds": judged.bounds,
    }


def unjudged_at(study: Study, arm: str) -> str | None:
    """Say at which rate, and why, it is unknown whether the SLO is kept; None where it is known."""
    point = study.unjudged(arm)
    return None if point is None else f"at {point.rate_rps:.2f}/s {point.judged.reason}"


def highest_goodput(study: Study, arm: str) -> float | None:
    """Return the most good requests per second at any rate tried; None where one is unknown."""
    found = [point.goodput_rps for point in study.open_of(arm)]
    known = [goodput_rps for goodput_rps in found if goodput_rps is not None]
    return max(known) if known and len(known) == len(found) else None


def gain(study: Study, scale: float = 1.0) -> dict[str, float | None]:
    """Return for each treatment how much more load the SLO carries than without control, - 1.

    At least that much, where no limit of the treatment was found; None where the baseline's was
    not, for then it could carry more, or any load.
    """
    base = study.highest_slo_rate(study.run.baseline, scale)
    if study.no_limit_found(study.run.baseline, scale):
        return dict.fromkeys(study.run.treatments)
    gains: dict[str, float | None] = {}
    for arm in study.run.treatments:
        rate = study.highest_slo_rate(arm, scale)
        gains[arm] = rate / base - 1 if rate and base else None
    return gains


def by_scale(study: Study, scale: float) -> dict[str, Any]:
    """Return the highest good rates, and the gain, with the SLO's limits times `scale`."""
    return {
        "scale": scale,
        "slo": asdict(study.slo.scaled(scale)),
        "highest_slo_rate_rps": {arm: study.highest_slo_rate(arm, scale) for arm in study.run.arms},
        "no_limit_found": {arm: study.no_limit_found(arm, scale) for arm in study.run.arms},
        "gain": gain(study, scale),
    }


def littles_verdict(study: Study) -> dict[str, Any]:
    """Return the largest |L / (lambda W + edges) - 1| and whether it is inside the limit."""
    errors = [abs(p.littles_error) for p in study.closed if p.littles_error is not None]
    limit = LITTLE_LIMIT.get(study.run.source, max(LITTLE_LIMIT.values()))
    worst = max(errors, default=None)
    return {
        "largest_error": worst,
        "limit": limit,
        "holds": None if worst is None else worst <= limit,
        "points": len(study.closed),
        "points_checked": len(errors),
    }


def invalid(study: Study) -> list[str]:
    """Return the points whose load was not what it should be, with the reasons."""
    lines = [
        f"{p.arm}, {p.clients} clients: {'; '.join(p.invalid_reasons)}"
        for p in study.closed
        if p.invalid_reasons
    ]
    lines += [
        f"{p.arm}, {p.rate_rps:.2f}/s: {'; '.join(p.invalid_reasons)}"
        for p in study.open
        if p.invalid_reasons
    ]
    return lines

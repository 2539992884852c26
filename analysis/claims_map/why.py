"""Where all three claims hold at once, by each reading of the energy, and one paragraph why."""

from collections.abc import Sequence
from typing import Any

from analysis.claims_map.results import ENERGY, LATENCY, SERVED
from analysis.prefix_caching import in_words

Values = dict[str, Any]
ABOUT = 1.5
"""A largest ratio within this factor of 8 is about the paper's "up to 8x" (ours): who sees 20x does
not say "up to 8x"."""
FLAT = 0.01
"""A smaller saving is none (ours)."""


def of_unit(point: Values, unit: str) -> list[Values]:
    """Return the readings of one claim at a point; the first is the claim as it is defined."""
    return [reading for reading in point["readings"] if reading["unit"] == unit]


def names(points: Sequence[Values], unit: str) -> list[str]:
    """Return the readings that some point has of one claim, the claim's own first."""
    found = [reading["reading"] for point in points for reading in of_unit(point, unit)]
    return list(dict.fromkeys(found))


def value(point: Values, name: str) -> float | None:
    """Return a reading's estimate; None where the point has none."""
    found = next((one for one in point["readings"] if one["reading"] == name), None)
    if found is None or found["estimate"] is None:
        return None
    return float(found["estimate"])


def holds(point: Values, name: str) -> bool:
    """Whether a reading reaches the paper's figure at a point, by the rules of the verdicts."""
    return any(one["holds"] for one in point["readings"] if one["reading"] == name)


def at_once(point: Values) -> list[str]:
    """Return the readings of the energy by which all three claims hold at a point."""
    return [name for name, reproduced in point["together"].items() if reproduced]


def paragraph(found: Values) -> str:
    """Return one paragraph, every number of which is counted from the points."""
    points = [point for point in found["points"] if not point["invalid_reasons"]]
    latency, energy, served = (names(points, unit) for unit in (LATENCY, ENERGY, SERVED))
    if not (latency and energy and served):
        return "No point has all three claims: nothing can be said of them together."
    paper = {
        unit: next(
            of_unit(point, unit)[0]["paper_value"] for point in points if of_unit(point, unit)
        )
        for unit in (LATENCY, ENERGY)
    }
    sentences = [
        f"Of {len(points)} points ({found['source']}, {in_words(found.get('prefix_caching'))}), "
        f"the largest latency ratio reaches the paper's figure at {count(points, latency[0])}, "
        f"the requests served at {count(points, served[0])}.",
        "Less energy reaches it "
        + ", ".join(f"{place(name)} {count(points, name)}" for name in energy)
        + " times.",
        "All three together hold, by the reading of the energy: "
        + ", ".join(
            f"{name} {sum(name in at_once(point) for point in points)}"
            for name in dict.fromkeys(name for point in points for name in point["together"])
        )
        + " times.",
        in_the_window(points, latency[0], energy[0], paper, found),
    ]
    return " ".join(sentences)


def in_the_window(
    points: Sequence[Values], latency: str, energy: str, paper: dict[str, float], found: Values
) -> str:
    """Say whether less energy in the window and "up to 8x" exclude each other, and why."""
    known = [
        (ratio, saving, point)
        for point in points
        if (ratio := value(point, latency)) is not None
        and (saving := value(point, energy)) is not None
    ]
    low, high = paper[LATENCY] / ABOUT, paper[LATENCY] * ABOUT
    saved = [one for one in known if one[1] >= paper[ENERGY]]
    about = [one for one in known if low <= one[0] <= high]
    both = [one for one in saved if one in about]
    wanted = f"{100 * paper[ENERGY]:g} % in the window"
    if both:
        first = f"{wanted} and a ratio of {low:.1f} to {high:.0f} meet at {len(both)} of "
        first += f"{len(known)} points."
    else:
        first = f"{wanted} and a ratio of {low:.1f} to {high:.0f} (about 8) meet nowhere"
        if about:
            most = max(saving for _, saving, _ in about)
            first += f": where the ratio is about 8 the window saves at most {100 * most:.1f} %"
        if saved:
            first += f", and where the window saves as much the ratio is {saved_range(saved)}"
        else:
            most, ratio = max((saving, ratio) for ratio, saving, _ in known)
            first += f"; no point saves as much: the most is {100 * most:.1f} %, at {ratio:.3g}x"
        first += ": as far as this map goes, they exclude each other in this model."
    return f"{first} {batches(known, found)}"


def saved_range(saved: Sequence[tuple[float, float, Values]]) -> str:
    """Return the range of the ratios."""
    ratios = [ratio for ratio, _, _ in saved]
    return f"{min(ratios):.3g} to {max(ratios):.3g}x"


def batches(known: Sequence[tuple[float, float, Values]], found: Values) -> str:
    """Say what the power in the window goes with: the batches of both arms."""
    arms = (found["baseline"], found["treatment"])
    rows = [
        (ratio, saving, *(point["window"][arm] for arm in arms))
        for ratio, saving, point in known
        if all(None not in point["window"].get(arm, {"": None}).values() for arm in arms)
    ]
    if not rows:
        return "Batches and power are n/a."
    text = "What decides is the power."
    flat = [(base, treated) for _, saving, base, treated in rows if saving < FLAT]
    if flat:
        sizes = [row["running"] for pair in flat for row in pair]
        watts = [treated["power_w"] / base["power_w"] for base, treated in flat]
        text += (
            f" At the {len(flat)} points that save less than {100 * FLAT:g} % in the window both "
            f"arms have batches of {min(sizes):.0f} requests or more, and the treatment draws "
            f"{100 * min(watts):.1f} % or more of the baseline's watts."
        )
    ratio, _, base, treated = max(rows, key=lambda row: row[1])
    return text + (
        f" Where the window saves most, the treatment draws {treated['power_w']:.0f} for "
        f"{base['power_w']:.0f} W with a batch of {treated['running']:.0f} for "
        f"{base['running']:.0f} requests, and the ratio of the latencies is {ratio:.3g}x."
    )


def count(points: Sequence[Values], name: str) -> int:
    """Return at how many points a reading holds."""
    return sum(holds(point, name) for point in points)


def place(name: str) -> str:
    """Return an energy reading as words in a sentence."""
    return name.partition(": ")[2] or "in the window"

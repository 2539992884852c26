"""What the tables say, as text: shared by the terminal and the report.

Everything comes from the contents of summary.json and claims.json.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from analysis.frames import few
from analysis.plain import NOT_MEASURED, number, percent
from analysis.prefix_caching import in_words
from bellman.records import WARMUP
from bellman.slo import Slo

Values = dict[str, Any]
FLOW = ("offered", "admitted", "rejected", "retried", "completed")
"""What becomes of the intended requests, as numbers: in every table of arms."""


def estimate(entry: Values) -> str:
    """Return an estimate with its interval: `9.6x [9.5, 9.7]`, `14.6 % less [14.5, 14.7]`.

    A ratio of 0 or infinity divides by, or is of, a latency of requests that were lost.
    """
    value, low, high = (entry[name] for name in ("estimate", "low", "high"))
    if value is None:
        return NOT_MEASURED
    if entry["unit"] == "times" and float(value) in {0.0, math.inf}:
        return "lost" if float(value) == 0 else "lost by the baseline"
    if entry["unit"] == "times":
        text, ends = f"{_times(value)}x", [low, high]
        shown = [NOT_MEASURED if end is None else _times(end) for end in ends]
    else:
        words = ("less", "more") if entry["unit"] == "less" else ("more", "less")
        sign, word = (100.0, words[0]) if float(value) >= 0 else (-100.0, words[1])
        text = f"{_tenths(sign * float(value))} % {word}"
        ends = [low, high] if sign > 0 else [high, low]
        shown = [NOT_MEASURED if end is None else _tenths(sign * float(end)) for end in ends]
    return f"{text} (no interval)" if low is None else f"{text} [{', '.join(shown)}]"


def _tenths(value: float) -> str:
    """Return one decimal; what rounds to zero has no sign."""
    return f"{round(value, 1) + 0.0:.1f}"


def _times(value: float | str) -> str:
    return f"{float(value):#.3g}".rstrip(".")


def notes(claim: Values) -> str:
    """Return the verdict's reason and everything a reader must know with it."""
    return "; ".join(note for note in [claim["reason"], *claim["caveats"]] if note)


def at_once(together: Sequence[Values]) -> list[str]:
    """Return, a line a treatment, by which readings of the energy all three claims hold."""
    lines = []
    for treatment in dict.fromkeys(entry["treatment"] for entry in together):
        by_outcome: dict[bool | None, list[str]] = {True: [], False: [], None: []}
        for entry in together:
            if entry["treatment"] == treatment:
                by_outcome[entry["reproduced"]].append(entry["reading"])
        held = ", ".join(by_outcome[True]) or "no reading"
        line = f"all three claims reproduced at once, by reading of the energy: {held}"
        for outcome, words in ((False, "not by"), (None, "not measured")):
            if by_outcome[outcome]:
                line += f"; {words}: {', '.join(by_outcome[outcome])}"
        lines.append(line)
    return lines


def warnings(summary: Values) -> list[str]:
    """Return what makes the whole run doubtful."""
    found = [f"invalid run: {reason}" for reason in summary["invalid_reasons"]]
    if summary.get("warnings"):  # a summary of an earlier version has none
        found.append(f"warning: {few(summary['warnings'])}")
    if summary["cut_short"]:
        found.insert(0, f"{summary['cut_short']} run: {_whole(summary)}")
    return found


def nothing_compared(summary: Values) -> str | None:
    """Return why there is no table: every number would be n/a; None where there are any."""
    if any(arm["complete_repeats"] for arm in summary["arms"].values()):
        return None
    return "nothing to compare: no repeat ran to its end"


def source_line(summary: Values) -> str:
    """Return the line over every table: source, answers, repeats, capacity and length."""
    parts = [summary["source"], f"answers: {summary['response_source']}"]
    begun = len(summary["repeats"])
    parts.append(f"{begun} repeat{'s' if begun != 1 else ''}")
    if any(len(arm["complete_repeats"]) != begun for arm in summary["arms"].values()):
        parts.append(_whole(summary))
    if summary["capacity_rps"] is not None:
        parts.append(f"capacity {summary['capacity_rps']:.2f} requests/s")
    parts.append(f"test length {summary['test_length_s']:g} s")
    if summary.get("prefix_caching") is not None:
        parts.append(in_words(summary["prefix_caching"]))
    return ", ".join(parts)


def _whole(summary: Values) -> str:
    """Say in how many repeats each arm ran to its end, with the baseline."""
    counts = (f"{arm} {len(values['complete_repeats'])}" for arm, values in summary["arms"].items())
    return f"repeats that ran to their end: {', '.join(counts)} of {len(summary['repeats'])}"


def papers_claims(claims: Sequence[Values]) -> list[Values]:
    """Return the claims about the arm that stands for the paper's."""
    return [claim for claim in claims if claim["verdict"] != "no claim"]


def comparison_table(claims: Sequence[Values], summary: Values) -> list[list[str]]:
    """Return header and a row per treatment: its estimate of each claim; no rows for one alone."""
    if len(summary["treatments"]) < 2 and len(papers_claims(claims)) == len(claims):
        return []
    names = list(dict.fromkeys(claim["claim"] for claim in claims))
    table = [["arm", *names]]
    for arm in summary["treatments"]:
        found = {claim["claim"]: claim for claim in claims if claim["treatment"] == arm}
        cells = (estimate(found[name]) if name in found else NOT_MEASURED for name in names)
        table.append([arm, *cells])
    return table


def arm_table(summary: Values, names: Sequence[str] | None = None) -> list[list[str]]:
    """Return header and one row per arm; only the quantities called `names`, where given."""
    shown = [(name, show) for name, show in _quantities(summary) if names is None or name in names]
    header = ["arm", *(name for name, _ in shown)]
    return [
        header,
        *([arm, *(show(values) for _, show in shown)] for arm, values in summary["arms"].items()),
    ]


def arm_notes(summary: Values) -> list[str]:
    """Return what the quantities of the arms' table are."""
    congested = summary["phases"].get("congested")
    notes = [
        "requests: all but the warm-up's, of the repeats in which the arm and the baseline ran to "
        "their ends; retried: sent more than once; e2e mean, ok p50, ok p99: of ok requests; mean "
        "of all, e2e p50, e2e p99: of all, lost ones are inf",
        f"SLO: share of requests with {Slo(**summary['slo']).in_words}",
    ]
    if congested:
        above = " above capacity" if congested["above_capacity"] else ""
        notes.append(f"congested: the phase of {congested['length_s']:g} s{above}")
    notes += replica_notes(summary)
    quality = quality_note(summary)
    if quality:
        notes.append(f"{quality}; answers: {summary['response_source']}")
    return notes


def replica_notes(summary: Values) -> list[str]:
    """Return, for each arm with several engines, what each of them answered and drew."""
    notes = []
    for arm, values in summary["arms"].items():
        replicas = values.get("replicas") or {}
        parts = [
            f"{name} answered {_count(part['completed'])}, {_kilojoules(part['energy_j'])}"
            for name, part in replicas.items()
        ]
        if parts:
            notes.append(f"{arm}: energy of {len(parts)} engines, idle too: {'; '.join(parts)}")
    if notes:
        notes.append("the other arms have one engine, and pay for no spare")
    return notes


def quality_note(summary: Values) -> str | None:
    """Return what the scores and their intervals are; None where nothing was scored."""
    scored = {name: arm["quality"] for name, arm in summary["arms"].items() if arm["quality"]}
    if not scored:
        return None
    notes = [f"scores: {next(iter(scored.values())).get('definition', '')}"]
    notes += [
        f"{name}: {found['scored']:,} of {found['requests']:,} have a scored text"
        for name, found in scored.items()
        if found.get("scored") != found.get("requests")
    ]
    return "; ".join(notes)


def phase_rows(summary: Values) -> list[list[str]]:
    """Return one row per phase and arm, for the report's second table; see `PHASE_HEADER`."""
    rows = []
    for name, phase in summary["phases"].items():
        where = {True: " above capacity", False: " below capacity", None: ""}
        label = f"{name}, {phase['length_s']:g} s{where[phase['above_capacity']]}"
        label += " (not counted)" if name == WARMUP else ""
        for arm, values in summary["arms"].items():
            part = values["phases"][name]
            row = [label, arm, *(show(part) for _, show in flow_quantities())]
            row += [_count(part["completed_inside"]), percent(part["lost_share"])]
            row += [
                _seconds(part.get(key))
                for key in ("e2e_mean_s", "e2e_ok_p99_s", "e2e_p50_s", "e2e_p99_s")
            ]
            row += [_seconds(part["ttft_p50_s"]), _milliseconds(part["tpot_p50_s"])]
            row += [_good(part), _kilojoules(part["energy_j"])]
            rows.append(row)
    return rows


PHASE_HEADER = [
    "phase",
    "arm",
    *FLOW,
    "finished inside",
    "lost",
    "e2e mean",
    "ok p99",
    "e2e p50",
    "e2e p99",
    "TTFT p50",
    "TPOT p50",
    "SLO",
    "GPU energy",
]


def _quantities(summary: Values) -> list[tuple[str, Callable[[Values], str]]]:
    """Return name and text of each quantity of the arms' table."""

    def in_congestion(key: str) -> Callable[[Values], str]:
        return lambda arm: _seconds(arm["phases"].get("congested", {}).get(key))

    streamed = any(arm["chunk_gap_p99_s"] is not None for arm in summary["arms"].values())
    gaps: list[tuple[str, Callable[[Values], str]]] = [
        ("chunk gap p50", lambda arm: _milliseconds(arm["chunk_gap_p50_s"])),
        ("chunk gap p99", lambda arm: _milliseconds(arm["chunk_gap_p99_s"])),
    ]
    answered = any("token_f1" in (arm["quality"] or {}) for arm in summary["arms"].values())
    answers: list[tuple[str, Callable[[Values], str]]] = [
        ("token F1", lambda arm: _rouge(arm, "token_f1")),
        (f"token F1 - {summary['baseline']}'s", lambda arm: _rouge(arm, "token_f1_difference")),
        ("token recall", lambda arm: _rouge(arm, "token_recall")),
    ]
    return [
        ("repeats", lambda arm: str(len(arm["complete_repeats"]))),
        *flow_quantities(),
        ("lost", _lost),
        ("SLO", _good),
        ("e2e mean", lambda arm: _seconds(arm["e2e_mean_s"])),
        ("ok p50", lambda arm: _seconds(arm.get("e2e_ok_p50_s"))),
        ("ok p99", lambda arm: _seconds(arm.get("e2e_ok_p99_s"))),
        ("mean of all", lambda arm: _seconds(arm.get("e2e_all_mean_s"))),
        ("e2e p50", lambda arm: _seconds(arm["e2e_p50_s"])),
        ("e2e p99", lambda arm: _seconds(arm["e2e_p99_s"])),
        ("congested e2e mean", in_congestion("e2e_mean_s")),
        ("congested e2e p99", in_congestion("e2e_p99_s")),
        *(gaps if streamed else []),
        ("length of an episode", lambda arm: _seconds(arm["episode_s"])),
        ("GPU energy", lambda arm: _kilojoules(arm["energy_j"])),
        ("J/request", lambda arm: number(arm["energy_j_per_completed_request"])),
        ("J/token", lambda arm: number(arm["energy_j_per_output_token"])),
        ("words", lambda arm: number(arm["output_words_mean"])),
        *(answers if answered else []),
        ("ROUGE-1 F1", lambda arm: _rouge(arm, "rouge1_f1")),
        (
            f"ROUGE-1 F1 - {summary['baseline']}'s",
            lambda arm: _rouge(arm, "rouge1_f1_difference"),
        ),
        ("ROUGE-Lsum F1", lambda arm: _rouge(arm, "rougeLsum_f1")),
        ("ROUGE-1 recall", lambda arm: _rouge(arm, "rouge1_recall")),
        ("ROUGE-1 precision", lambda arm: _rouge(arm, "rouge1_precision")),
        ("ROUGE-1 F1 / random sentences'", lambda arm: _rouge(arm, "rouge1_f1_ratio")),
    ]


def flow_quantities() -> list[tuple[str, Callable[[Values], str]]]:
    """Return name and text of what became of the intended requests."""
    return [(name, lambda arm, name=name: _count(arm.get(name))) for name in FLOW]  # type: ignore[misc]


def _lost(arm: Values) -> str:
    statuses = arm["statuses"] or {}
    told = {"ok", "rejected"}  # by columns of their own
    kinds = [f"{n} {status}" for status, n in statuses.items() if n and status not in told]
    return percent(arm["lost_share"]) + (f" ({', '.join(kinds)})" if kinds else "")


def good_share(fraction: float | None, bounds: Sequence[float] | None) -> str:
    """Return an SLO attainment; where requests could not be judged, n/a and what it lies between.

    What is unknown of them stands among the warnings.
    """
    if fraction is not None or bounds is None:
        return percent(fraction)
    return f"{NOT_MEASURED} ({100 * bounds[0]:.1f} to {100 * bounds[1]:.1f} %)"


def _good(part: Values) -> str:
    return good_share(part["slo_attainment"], part.get("slo_attainment_bounds"))


def _rouge(arm: Values, name: str) -> str:
    score = (arm["quality"] or {}).get(name)
    if score is None or score["value"] is None:
        return NOT_MEASURED
    text = f"{score['value']:.3f}"
    return text if score["low"] is None else f"{text} [{score['low']:.3f}, {score['high']:.3f}]"


def _seconds(value: float | str | None) -> str:
    if value == "inf":
        return "inf (lost)"
    return NOT_MEASURED if value is None else f"{float(value):#.3g} s".replace(". s", " s")


def _milliseconds(value: float | str | None) -> str:
    if value == "inf":
        return "inf (lost)"
    return NOT_MEASURED if value is None else f"{1000 * float(value):.3g} ms"


def _count(number: int | None) -> str:
    return NOT_MEASURED if number is None else f"{number:,}"


def _kilojoules(joules: float | None) -> str:
    return NOT_MEASURED if joules is None else f"{joules / 1000:,.1f} kJ"

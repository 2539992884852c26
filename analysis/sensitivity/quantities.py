"""What is looked at of an arm at a point: name, label, and how its text is made."""

from collections.abc import Callable
from dataclasses import dataclass

from analysis.plain import number, percent, seconds


@dataclass(frozen=True)
class Quantity:
    """One quantity of an arm."""

    label: str
    text: Callable[[float | None], str]
    factor: float = 1.0
    """What the figure multiplies it by."""
    logarithmic: bool = False


QUANTITIES = {
    "slo_attainment": Quantity("SLO attainment (%)", percent, 100.0),
    "congested_e2e_mean_s": Quantity(
        "e2e latency under congestion, mean (s)", seconds, logarithmic=True
    ),
    "energy_j_per_good_request": Quantity("energy a good request (J)", number, logarithmic=True),
    "words": Quantity("words an answer", number),
    "level_spread": Quantity("level under congestion, standard deviation", number),
    "words_listening": Quantity("words an answer, listening", number),
    "words_others": Quantity("words an answer, the others", number),
    "e2e_listening_s": Quantity("e2e under congestion, listening (s)", seconds, logarithmic=True),
    "e2e_others_s": Quantity("e2e under congestion, the others (s)", seconds, logarithmic=True),
    "fairness_words": Quantity("Jain's index of the words", number),
    "fairness_slo": Quantity("Jain's index of the SLO attainment", number),
}

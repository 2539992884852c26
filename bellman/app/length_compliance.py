"""How many words a model writes when asked for N, and what to ask for to get them.

Small models obey in order, not in size: asked for 20 words they write 40. The curve comes from a
response bank; `adaptation.calibrated=true` asks for the N that yields the wanted length.
"""

import math
from collections.abc import Mapping

from bellman.errors import ConfigError

LengthCompliance = Mapping[int, float]
"""Mean words written, by words asked for."""


def calibrated_words(wanted_words: int, length_compliance: LengthCompliance) -> int:
    """Return the recorded ask whose mean answer is nearest to `wanted_words`, by their ratio."""

    def distance(asked_words: int) -> tuple[float, int]:
        return abs(math.log(length_compliance[asked_words] / wanted_words)), asked_words

    return min(length_compliance, key=distance)


def asked_words(
    budget_words: int, *, calibrated: bool, length_compliance: LengthCompliance | None
) -> int:
    """Return what to ask for; raises `ConfigError` where there is no curve to calibrate by."""
    if not calibrated:
        return budget_words
    if not length_compliance:
        raise ConfigError(
            "adaptation.calibrated", True, "needs a recorded response bank (engine/bank=recorded)"
        )
    return calibrated_words(budget_words, length_compliance)

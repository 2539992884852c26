"""What makes a request good: the limits that goodput is counted by."""

from dataclasses import dataclass

from bellman.errors import require


@dataclass(frozen=True)
class Slo:
    """Limits that a good request meets, all of them (ours: the paper gives none)."""

    ttft_s: float | None = 2.0
    """Most seconds to the first token; None sets no limit."""
    tpot_s: float | None = 0.1
    """Most seconds per further output token; an answer of one token meets it."""
    e2e_s: float | None = 20.0
    """Most seconds to the last token."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("ttft_s", "tpot_s", "e2e_s"):
            limit = getattr(self, name)
            require(limit is None or limit > 0, f"slo.{name}", limit, "must be greater than 0")

"""What makes a request good: the limits that goodput is counted by."""

from dataclasses import fields
from typing import Self

from bellman.schema import Positive, schema


@schema
class Slo:
    """Limits that a good request meets, all of them (ours: the paper gives none)."""

    ttft_s: Positive | None = 2.0
    """Most seconds to the first token; None sets no limit."""
    tpot_s: Positive | None = 0.1
    """Most seconds per further output token; an answer of one token has none to meet."""
    e2e_s: Positive | None = 20.0
    """Most seconds to the last token."""

    @property
    def in_words(self) -> str:
        """The limits as captions have them: `ttft 2 s, tpot 0.1 s, e2e 20 s`."""
        limits = ((field.name, getattr(self, field.name)) for field in fields(self))
        words = [f"{name.removesuffix('_s')} {v:g} s" for name, v in limits if v is not None]
        return ", ".join(words) or "no limits"

    def scaled(self, factor: float) -> Self:
        """Return the SLO with every limit `factor` times as long."""
        limits = {field.name: getattr(self, field.name) for field in fields(self)}
        return type(self)(**{k: None if v is None else factor * v for k, v in limits.items()})

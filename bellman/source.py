"""Where a number comes from; every record, summary, table and caption carries it."""

from typing import Literal

Source = Literal["simulated", "measured"]

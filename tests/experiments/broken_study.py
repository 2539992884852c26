"""A study with a mistake that nobody foresaw, for tests of how commands end."""

import sys

from bellman.schema import schema
from bellman.settings import Settings
from experiments.studies import paired
from experiments.studies.base import Cells


@schema
class Paired(paired.Paired):
    leaves: bool = False
    """As a library that ends the process it is used in."""

    def cells(self, settings: Settings) -> Cells:
        if self.leaves:
            sys.exit(0)
        raise ZeroDivisionError("a mistake")

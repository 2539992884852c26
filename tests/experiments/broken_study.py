"""A study with a mistake that nobody foresaw, for tests of how commands end."""

from bellman.schema import schema
from bellman.settings import Settings
from experiments.studies import paired
from experiments.studies.base import Cells


@schema
class Paired(paired.Paired):
    def cells(self, settings: Settings) -> Cells:
        raise ZeroDivisionError("a mistake")

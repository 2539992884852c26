"""The way to the engine: what an API server and a tokenizer do before a request is queued."""

import math
from random import Random

from bellman.schema import NotNegative, schema


@schema
class FrontEnd:
    """A delay for each request between its sending and the moment when the scheduler has it.

    Delays are lognormal and do not depend on the load: an API server that is itself overloaded is
    not modelled.
    """

    mean_ms: NotNegative
    """0: requests are in the engine when they are sent."""
    variation: NotNegative
    """Standard deviation / mean."""

    def delay_s(self, random: Random) -> float:
        """Draw the delay of one request, in seconds."""
        if self.mean_ms == 0:
            return 0.0
        variance = math.log1p(self.variation**2)
        mean_s = 1e-3 * self.mean_ms
        return mean_s * random.lognormvariate(-variance / 2, math.sqrt(variance))

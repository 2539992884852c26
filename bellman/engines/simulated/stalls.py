"""Steps that come late: what makes the tail of inter-token latencies where no prompt is read."""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bellman.schema import NotNegative, schema

Vector = NDArray[np.float64]


@schema
class Stalls:
    """A share of the steps brings its tokens `ms` later than the others of the same batch.

    The mean of all steps is the time that `StepTime` says, with which the engine computes: stalls
    change no token's expected time and no joule. They spread the distribution of inter-token
    latencies, exactly, as a mixture. Measured by clients, they may be the host's, the API server's
    or the client's own: no source tells.
    """

    share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """0: every step takes its mean."""
    ms: NotNegative = 0.0

    def spread(self, latencies_s: Vector, weights: Vector) -> tuple[Vector, Vector]:
        """Return the latencies of steps without and with a stall, and how many tokens had each."""
        if self.share == 0 or self.ms == 0:
            return latencies_s, weights
        late_s = 1e-3 * self.ms
        on_time_s = latencies_s - self.share * late_s
        return (
            np.concatenate([on_time_s, on_time_s + late_s]),
            np.concatenate([(1 - self.share) * weights, self.share * weights]),
        )


NO_STALLS = Stalls()

"""A sensor with faults, for simulated engines: its counts are noisy, or it fails for a period."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bellman.sensing.failure import AskedFor
from bellman.sensing.observation import Observation

Sense = Callable[[], Observation]


def faulty(sense: Sense, *, spread: float, missing: float, seed: int) -> Sense:
    """Return a sensor that reports each count times exp(spread x z), z standard normal.

    A share `missing` of its readings fails with `AskedFor`.
    """
    generator = np.random.default_rng(seed)

    def read() -> Observation:
        observation = sense()
        fails, z = generator.random() < missing, generator.standard_normal()
        if fails:
            raise AskedFor("the sensor fails, as engine.sensor_missing says")
        factor = math.exp(spread * z)
        return replace(
            observation,
            waiting=round(factor * observation.waiting),
            running=round(factor * observation.running),
        )

    return read

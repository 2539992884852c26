"""Against queueing theory: the mean wait below saturation.

Two links: what the driver and the server do equals the exact recursion, request by request; and
the recursion, fed with the project's own arrivals, agrees with theory within a narrow interval.
"""

import heapq
import math

import numpy as np
import pytest

from bellman.load.driver import drive
from bellman.load.processes import PROCESSES
from bellman.load.rate_profile import Segment, to_clock
from tests.load.places_server import PlacesServer, run_virtual, schedule_at

SERVICE_S = 1.0
CASES = [(1, 0.7), (4, 0.8), (16, 0.9)]


def poisson_times(rate_rps, seconds, generator):
    unit = PROCESSES["poisson"](rate_rps * seconds, 1.0, generator)
    return to_clock(unit, [Segment(0, seconds, rate_rps, rate_rps)])


def exact_waits_s(times, services, places):
    """First come, first served: a request starts when it is there and the first place is free."""
    free_s = [0.0] * places
    waits = []
    for time_s, service_s in zip(times, services, strict=True):
        start_s = max(time_s, free_s[0])
        heapq.heapreplace(free_s, start_s + service_s)
        waits.append(start_s - time_s)
    return np.array(waits)


def mean_and_half_width(places, load, draw_services):
    """Mean wait over independent episodes without their first tenth, and three standard errors."""
    means = []
    for seed in range(30):
        generator = np.random.default_rng(seed)
        times = poisson_times(load * places, 20_000 / places, generator)
        waits = exact_waits_s(times, draw_services(generator, len(times)), places)
        means.append(waits[len(waits) // 10 :].mean())
    return np.mean(means), 3 * np.std(means, ddof=1) / math.sqrt(len(means))


def erlang_c_wait_s(places, load):
    """Mean wait of M/M/c (Erlang C), in units of the mean service time."""
    offered = load * places
    below = sum(offered**k / math.factorial(k) for k in range(places))
    top = offered**places / math.factorial(places) / (1 - load)
    return top / (below + top) / (places * (1 - load))


def constant_service_wait_s(places, load):
    """Mean wait of M/D/c: exact for one place, Cosmetatos' approximation (1975) for more."""
    more = (1 - load) * (places - 1) * (math.sqrt(4 + 5 * places) - 2) / (16 * load * places)
    return 0.5 * (1 + more) * erlang_c_wait_s(places, load)


@pytest.mark.parametrize(("places", "load"), CASES)
def test_driver_and_server_do_what_the_exact_recursion_says(places, load):
    generator = np.random.default_rng(5)
    times = poisson_times(load * places, 2000 / places, generator)
    services = np.round(generator.exponential(SERVICE_S, len(times)), 6)

    async def main():
        server = PlacesServer(places, SERVICE_S, iter(services.tolist()).__next__)
        await drive(schedule_at(times.tolist()), server.send, server.start_s, 1e9)
        return server.answers

    answers = run_virtual(main())
    waits = [answer.e2e_s for answer in answers] - services
    # One tick a change of hands at most: 1,000 requests in a row may add up to a millisecond.
    assert waits == pytest.approx(exact_waits_s(times, services, places), abs=2e-3)
    assert waits.max() > 1.0


@pytest.mark.parametrize(("places", "load"), CASES)
def test_exponential_service_waits_as_erlang_c_says(places, load):
    mean, half_width = mean_and_half_width(
        places, load, lambda generator, count: generator.exponential(SERVICE_S, count)
    )
    assert mean == pytest.approx(erlang_c_wait_s(places, load), abs=half_width)
    assert half_width < 0.15 * mean


@pytest.mark.parametrize(("places", "load"), CASES)
def test_constant_service_waits_as_theory_says(places, load):
    expected = constant_service_wait_s(places, load)
    mean, half_width = mean_and_half_width(
        places, load, lambda generator, count: np.full(count, SERVICE_S)
    )
    assert mean == pytest.approx(expected, abs=half_width + 0.01 * expected)
    assert half_width < 0.15 * mean

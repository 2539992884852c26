"""The capacity measurement finds the capacity of a server whose capacity is known."""

import asyncio

import pytest

from bellman.engines.base import EngineDied
from bellman.errors import RunError
from bellman.load.saturation import measure_capacity
from tests.load.places_server import run_virtual


def measure(places, service_s, concurrency, warmup_s, duration_s):
    async def main():
        server = asyncio.Semaphore(places)

        async def send_one(index):
            async with server:
                await asyncio.sleep(service_s)

        return await measure_capacity(send_one, concurrency, warmup_s, duration_s)

    return run_virtual(main())


def test_four_places_and_a_second_of_service_are_four_requests_per_second():
    measured = measure(4, 1.0, concurrency=32, warmup_s=10.5, duration_s=100)
    assert measured.capacity_rps == 4.0
    assert measured.completed == 400


def test_too_few_clients_measure_their_own_concurrency():
    assert measure(4, 1.0, concurrency=2, warmup_s=10.5, duration_s=100).capacity_rps == 2.0


def test_no_completion_is_an_error_with_its_remedy():
    with pytest.raises(RunError, match=r"arrivals\.capacity_rps"):
        measure(4, 50.0, concurrency=8, warmup_s=1, duration_s=10)


def test_the_death_of_the_engine_comes_through():
    async def main():
        async def send_one(index):
            await asyncio.sleep(1)
            raise EngineDied("gone")

        await measure_capacity(send_one, 3, 1.0, 10.0)

    with pytest.raises(EngineDied):
        run_virtual(main())

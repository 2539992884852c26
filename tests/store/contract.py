"""What every store promises its gateways, as scenes that a test plays with any of them."""

import asyncio
from collections.abc import Awaitable, Callable

from bellman.store.base import SignalStore

Scene = Callable[[SignalStore, float], Awaitable[None]]


async def one_gateway_holds_the_lease(store: SignalStore, lease_s: float) -> None:
    first, second = (store.seat("one", name, lease_s) for name in ("a", "b"))
    token = (await first.exchange(3, True)).token
    assert token is not None
    seen = await second.exchange(4, True)
    assert (seen.token, seen.elsewhere, seen.gateways, seen.published) == (None, 3, 2, None)
    again = await first.exchange(5, True)
    assert (again.token, again.elsewhere, again.gateways) == (token, 4, 2)
    assert not await second.publish(token, 0.9, "{}")


async def all_read_the_level(store: SignalStore, lease_s: float) -> None:
    holder, reader = (store.seat("level", name, lease_s) for name in ("a", "b"))
    await reader.exchange(0, False)
    token = (await holder.exchange(0, True)).token
    assert token is not None
    for level in (0.1 + 0.2, 0.0, 1e-7, 1.0):
        assert await holder.publish(token, level, f'{{"level":{level}}}')
        found = (await reader.exchange(0, False)).published
        assert found is not None and found.age_s is not None
        assert (found.level, found.state) == (level, f'{{"level":{level}}}')
        assert 0 <= found.age_s < lease_s
    await asyncio.sleep(lease_s)
    found = (await reader.exchange(0, False)).published
    assert found is not None and found.age_s is not None
    assert found.age_s > lease_s * 0.99  # it ages while nobody publishes


async def a_silent_holder_is_replaced(store: SignalStore, lease_s: float) -> None:
    silent, other = (store.seat("silent", name, lease_s) for name in ("a", "b"))
    token = (await silent.exchange(7, True)).token
    assert token is not None and await silent.publish(token, 0.5, '"state"')
    assert (await other.exchange(1, True)).elsewhere == 7
    await asyncio.sleep(lease_s * 1.1)
    taken = await other.exchange(1, True)
    assert taken.token is not None and taken.token > token
    assert (taken.elsewhere, taken.gateways) == (0, 1)  # its requests are gone with it
    assert taken.published is not None and taken.published.state == '"state"'
    # It wakes up, and does what it was about to do.
    assert not await silent.publish(token, 0.0, '"old"')
    back = await silent.exchange(7, True)
    assert back.token is None and back.published is not None
    assert back.published.state == '"state"'
    assert (await other.exchange(1, True)).elsewhere == 7


async def a_holder_that_cannot_sense_gives_back(store: SignalStore, lease_s: float) -> None:
    blind, other = (store.seat("blind", name, lease_s) for name in ("a", "b"))
    token = (await blind.exchange(2, True)).token
    assert token is not None and await blind.publish(token, 0.5, '"state"')
    assert (await blind.exchange(2, False)).token is None
    assert not await blind.publish(token, 0.5, '"state"')
    taken = await other.exchange(0, True)
    assert taken.token is not None and taken.elsewhere == 2
    assert taken.published is not None
    assert (taken.published.level, taken.published.state) == (None, '"state"')


async def who_leaves_is_replaced_at_once(store: SignalStore, lease_s: float) -> None:
    leaving, other = (store.seat("leave", name, lease_s) for name in ("a", "b"))
    token = (await leaving.exchange(2, True)).token
    assert token is not None and await leaving.publish(token, 0.5, '"state"')
    await other.exchange(0, False)
    await other.leave()  # who holds nothing takes nothing from others
    assert (await leaving.exchange(2, True)).token == token
    await leaving.leave()
    taken = await other.exchange(0, True)
    assert taken.token is not None and (taken.elsewhere, taken.gateways) == (0, 1)
    assert taken.published is not None and taken.published.level == 0.5


async def endpoints_are_apart(store: SignalStore, lease_s: float) -> None:
    seats = [store.seat(name, "a", lease_s) for name in ("x", "x/y", "http://127.0.0.1:1/é {}")]
    for count, seat in enumerate(seats):
        view = await seat.exchange(count, True)
        assert view.token is not None and await seat.publish(view.token, count / 10, str(count))
    for count, seat in enumerate(seats):
        view = await seat.exchange(count, True)
        assert (view.elsewhere, view.gateways) == (0, 1)
        assert view.published is not None and view.published.state == str(count)


async def of_many_at_once_one_gets_the_lease(store: SignalStore, lease_s: float) -> None:
    seats = [store.seat("many", f"gateway {number}", lease_s) for number in range(8)]
    views = await asyncio.gather(*(seat.exchange(1, True) for seat in seats))
    assert len([view for view in views if view.token is not None]) == 1
    assert {(await seat.exchange(1, True)).elsewhere for seat in seats} == {7}


SCENES: tuple[Scene, ...] = (
    one_gateway_holds_the_lease,
    all_read_the_level,
    a_silent_holder_is_replaced,
    a_holder_that_cannot_sense_gives_back,
    who_leaves_is_replaced_at_once,
    endpoints_are_apart,
    of_many_at_once_one_gets_the_lease,
)

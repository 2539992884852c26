"""The circuit breaker's three states on sequences written out."""

import pytest

from bellman.admission.accept_all import AcceptAll
from bellman.admission.base import Outcome, Refusal
from bellman.admission.breaker import Breaker
from bellman.admission.queue_limit import QueueLimit
from bellman.errors import ConfigError
from tests.admission.entrance import Entrance

OPEN = "circuit breaker: open"


def breaker(admission: object = AcceptAll(), **parameters: float) -> Breaker:
    given = {"failures": 0.5, "least_requests": 4, "window_s": 10.0, "open_s": 5.0, "probes": 2}
    return Breaker(admission, **(given | parameters))  # type: ignore[arg-type]


def serve(entrance: Entrance, *outcomes: Outcome) -> None:
    for outcome in outcomes:
        assert entrance.ask() is None
        entrance.end(outcome=outcome)


def test_it_opens_at_the_share_of_failures_and_not_before_there_are_enough() -> None:
    entrance = Entrance(breaker())
    serve(entrance, "error", "error", "error")
    assert entrance.door.state == "closed"
    entrance = Entrance(breaker())
    serve(entrance, "ok", "ok", "ok", "error", "error")
    assert entrance.door.state == "closed"
    serve(entrance, "left")
    assert entrance.ask() == Refusal(503, OPEN, 5)
    entrance.now_s = 2.5
    assert entrance.ask() == Refusal(503, OPEN, 3)


def test_old_failures_are_forgotten() -> None:
    entrance = Entrance(breaker())
    serve(entrance, "error", "error", "error")
    entrance.now_s = 10.0
    serve(entrance, "ok", "ok", "ok", "error")
    assert entrance.door.state == "closed"


def opened() -> Entrance:
    entrance = Entrance(breaker())
    serve(entrance, *["error"] * 4)
    entrance.now_s = 5.0
    return entrance


def test_half_open_it_closes_when_all_probes_end_well() -> None:
    entrance = opened()
    assert entrance.enters(5) == 2
    assert entrance.ask() == Refusal(503, "circuit breaker: half-open, its probes are out", None)
    entrance.now_s = 6.0
    entrance.end()
    assert entrance.door.state == "half-open"
    entrance.end()
    assert entrance.door.state == "closed"
    serve(entrance, "error", "error", "error")  # it starts counting afresh
    assert entrance.door.state == "closed"


def test_half_open_one_failure_opens_it_again() -> None:
    entrance = opened()
    assert entrance.enters(2) == 2
    entrance.now_s = 6.0
    entrance.end(outcome="error")
    assert entrance.ask() == Refusal(503, OPEN, 5)
    entrance.end()  # the other probe of that time says nothing any more
    assert entrance.door.state == "open"
    entrance.now_s = 11.0
    assert entrance.enters(5) == 2


def test_what_entered_before_it_opened_says_nothing_later() -> None:
    entrance = Entrance(breaker())
    assert entrance.enters() == 1
    early = entrance.permits.pop()
    serve(entrance, *["error"] * 4)
    entrance.now_s = 5.0
    assert entrance.enters(2) == 2
    early.done("error", 5.5)
    assert entrance.door.state == "half-open"


def test_refusals_behind_are_its_failures_and_are_handed_on() -> None:
    entrance = Entrance(breaker(QueueLimit(4)))
    assert entrance.enters(4) == 4
    for _ in range(4):
        assert entrance.ask() == Refusal(503, "queue limit: 4 outstanding, limit 4")
    assert entrance.ask() == Refusal(503, OPEN, 5)
    entrance.end(4)
    entrance.now_s = 5.0
    assert entrance.enters(5) == 2


def test_a_breaker_tells_the_door_behind_how_requests_end() -> None:
    entrance = Entrance(breaker(QueueLimit(tokens=10)))
    for _ in range(3):
        assert entrance.enters(prompt_tokens=10) == 1
        entrance.end()


def test_it_needs_an_admission_behind_it() -> None:
    with pytest.raises(ConfigError, match="admission"):
        breaker(3)

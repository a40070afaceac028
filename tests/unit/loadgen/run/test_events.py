"""Events happen at their moments after the agreed start, in order, and never behind the run."""

from __future__ import annotations

import threading
import time

import pytest

from loadgen.cluster import ServerEvent
from loadgen.errors import LoadgenError
from loadgen.run.events import ServerEvents

PROXY = ServerEvent(at_seconds=1.0, restart="proxy")
BROKER = ServerEvent(at_seconds=0.5, restart="broker")
LATER = ServerEvent(at_seconds=3600.0, restart="proxy")


def test_events_happen_in_order_of_their_moments() -> None:
    done = threading.Event()
    restarted: list[str] = []

    def restart(role: str) -> None:
        restarted.append(role)
        if role == "proxy":
            done.set()

    with ServerEvents([PROXY, BROKER], restart) as events:
        for _ in range(3):  # every task says so, and more than once
            events.agreed(time.time() - 10.0)
        done.wait(10)
    happened = events.happened(interrupted=False)
    assert restarted == [each["restart"] for each in happened] == ["broker", "proxy"]
    assert all(10.0 <= each["at_seconds"] <= each["ready_seconds"] for each in happened)


def test_a_run_that_is_over_before_an_event_is_told() -> None:
    with ServerEvents([LATER], lambda role: None) as events:
        events.agreed(time.time())
    with pytest.raises(LoadgenError, match="over before the proxy was to be restarted"):
        events.happened(interrupted=False)
    assert events.happened(interrupted=True) == []


def test_a_server_that_does_not_come_up_again_ends_the_run() -> None:
    tried = threading.Event()

    def restart(role: str) -> None:
        tried.set()
        raise LoadgenError(f"The {role} did not start.")

    with ServerEvents([BROKER, PROXY], restart) as events:
        events.agreed(time.time() - 10.0)
        tried.wait(10)
    with pytest.raises(LoadgenError, match="broker did not start"):
        events.happened(interrupted=False)

"""Events happen at their moments after the agreed start, in order, and never behind the run."""

from __future__ import annotations

import threading
import time

import pytest
from pydantic import ValidationError

from loadgen.clients.records import Outcome, RequestRecord, TaskFacts, TaskReport, report_rows
from loadgen.cluster import ClusterPlan, ServerEvent
from loadgen.errors import LoadgenError
from loadgen.run.events import ServerEvents, again_seconds

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


def test_a_proxy_that_is_not_there_cannot_be_restarted() -> None:
    with pytest.raises(ValidationError, match="an event restarts the proxy, and there is none"):
        ClusterPlan(events=(PROXY,))


def reports(*requests: tuple[int, float, float, Outcome]) -> list[TaskReport]:
    """Requests by client, start, end and outcome, of two tasks."""
    records = [
        RequestRecord(client, "load/ns", started, started, None, finished, outcome)
        for client, started, finished, outcome in requests
    ]
    facts = TaskFacts(0, 1, 0.0, 0.0, 0.0)
    halves = (records[::2], records[1::2])
    return [TaskReport(report_rows(task, half), facts) for task, half in enumerate(halves)]


BEFORE = [(client, 0.0, 1.0, Outcome.ANSWERED) for client in range(3)]


def test_clients_are_answered_again_once_the_last_one_is() -> None:
    since = [
        (0, 5.5, 7.0, Outcome.ANSWERED),
        (1, 5.5, 6.0, Outcome.DISCONNECTED),
        (1, 8.0, 9.0, Outcome.ANSWERED),
        (1, 9.0, 30.0, Outcome.ANSWERED),
        (2, 6.0, 6.5, Outcome.ANSWERED),
    ]
    assert again_seconds(reports(*BEFORE, *since), 5.0) == 4.0


def test_clients_of_whom_one_is_never_answered_again_are_not() -> None:
    since = [(0, 5.5, 7.0, Outcome.ANSWERED), (1, 5.5, 7.0, Outcome.TIMEOUT)]
    # Asked before the restart and answered behind it: by another connection's luck.
    since.append((2, 4.5, 7.0, Outcome.ANSWERED))
    assert again_seconds(reports(*BEFORE, *since), 5.0) is None

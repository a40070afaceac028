"""Refusals are counted by subject, and logged at most once a second."""

import logging

from server.authentication.refused import (
    TOLD_SECONDS,
    RefusedOperations,
    Subject,
)
from server.instruments import AUTHORIZATION
from tests.support.clocks.manual_clock import ManualClock
from tests.support.security.peers import session

TOPIC = "persistent://acme/shop/orders"


def test_refusals_are_counted_by_subject() -> None:
    refused = RefusedOperations(ManualClock())
    for _ in range(3):
        refused.add(session("ann"), Subject.TOPIC, "PRODUCE", TOPIC)
    refused.add(None, Subject.NAMESPACE, "GET_TOPICS", "acme/shop")
    found = {sample.labels["of"]: sample.value for sample in AUTHORIZATION[0].read(refused)}
    assert found == {**dict.fromkeys(Subject, 0), "topic": 3, "namespace": 1}


def test_refusals_are_logged_once_per_second_in_lines_of_bounded_length(caplog) -> None:
    clock = ManualClock()
    refused = RefusedOperations(clock)
    with caplog.at_level(logging.INFO, "server.authentication.refused"):
        for _ in range(3):
            refused.add(session("ann", "bob"), Subject.TOPIC, "PRODUCE", TOPIC)
        clock.advance(TOLD_SECONDS)
        refused.add(session("x\n" * 5_000), Subject.ROUTE, "GET", "/" * 5_000)
    first, second = (record.getMessage() for record in caplog.records)
    assert first == f"refused: 'ann' for 'bob' may not PRODUCE of topic '{TOPIC}'"
    assert second.endswith("(5000 characters); 2 more were refused before")
    assert len(second) < 500
    assert "\n" not in second

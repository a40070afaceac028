"""What a run says of its stuck peers follows from its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadgen.results.stuck import parse_stuck
from loadgen.stuck_peers.summary import PeerEnd, PeerRecord, stuck_document
from tests.support.runs.stuck_runs import (
    ASKED,
    GONE,
    SCENARIO,
    peer,
    report,
    row,
    starved,
    unharmed,
)

if TYPE_CHECKING:
    from loadgen.clients.records import TaskReport


def figures(*reports: TaskReport):
    found = parse_stuck(stuck_document(SCENARIO.stuck_pipelined, reports))
    assert found is not None
    return found


def test_a_request_belongs_to_the_phase_in_which_it_was_due() -> None:
    # Given one before, two while the peer was there, one after
    rows = [row(0, 1.0, 5.0), row(0, ASKED, 1.2), row(0, 7.0, 7.2), row(0, GONE, 7.4)]
    # When
    found = figures(report(rows, (peer(),)))
    # Then
    counts = [phase.requests for phase in (found.before, found.stuck, found.after)]
    assert counts == [1, 2, 1]
    assert found.stuck.p99_seconds == pytest.approx(0.2)


def test_an_answer_after_the_phase_is_none_in_it() -> None:
    found = figures(report([row(0, 2.0, 3.0), row(0, 6.0, GONE + 0.1)], (peer(),)))
    assert (found.stuck.answered, found.stuck.answered_in_phase) == (2, 1)


def test_the_first_answer_is_that_of_a_request_due_since_the_peers_asked() -> None:
    # Given one answered before, then one refused, then two answered
    rows = [row(0, 1.0, 1.5), row(0, 2.0, 2.5, "refused"), row(1, 4.0, 4.05), row(2, 2.0, 4.6)]
    # When
    found = figures(report(rows, (peer(),)))
    # Then it took what it took from its own moment, and nobody was answered since the first's
    assert found.first_answer_latency_seconds == pytest.approx(0.05)
    assert found.nobody_answered_seconds == pytest.approx(2.05)


def test_without_an_answer_since_the_peers_asked_nothing_is_said_of_the_first() -> None:
    found = figures(report([row(0, 2.0, 2.5, "refused")], (peer(),)))
    assert (found.first_answer_latency_seconds, found.nobody_answered_seconds) == (None, None)


def test_the_distance_to_the_next_listing_is_no_wait_for_an_answer() -> None:
    # Given a server that answers at once, and a listing that is due a while after the peers asked
    found = figures(report([row(0, ASKED + 0.7, ASKED + 0.702)], (peer(),)))
    # Then
    assert found.first_answer_latency_seconds == pytest.approx(0.002)
    assert found.nobody_answered_seconds == pytest.approx(0.002)


def test_refusals_count_among_the_latencies_as_what_was_never_answered() -> None:
    # Given 10 listings beside the peer, of which the quickest 4 were answered
    answered = [row(0, 2.0, 2.1) for _ in range(4)]
    refused = [row(0, 2.0, 5.0, "refused") for _ in range(6)]
    # When
    found = figures(report([*answered, *refused], (peer(),)))
    # Then neither the median nor the 99th percentile was answered
    assert (found.stuck.p50_seconds, found.stuck.p99_seconds) == (None, None)
    # And with one refusal fewer than half, the median was
    more = figures(report([*answered, *refused[:4]], (peer(),)))
    assert (more.stuck.p50_seconds, more.stuck.p99_seconds) == (pytest.approx(0.1), None)


def test_what_was_answered_when_the_peers_had_gone_is_counted_apart() -> None:
    found = figures(report([row(0, 2.0, 3.0), row(0, 6.0, GONE + 0.1)], (peer(),)))
    assert found.stuck.answered_afterwards == 1


def test_clients_that_were_refused_are_counted_once_each() -> None:
    rows = [row(c, due, due + 1, "refused") for c in (3, 4) for due in (2.0, 3.0)]
    found = figures(report([*rows, row(5, 2.0, 2.1, "timeout")], (peer(),)))
    assert (found.stuck.refused, found.stuck.clients_refused, found.stuck.failed) == (4, 2, 1)


def test_peers_of_all_tasks_are_one_story() -> None:
    # Given
    first = report([row(0, 2.0, 2.1)], (peer(0, 4.05, PeerEnd.CLOSED), peer(2, 5.05, PeerEnd.LEFT)))
    lost = PeerRecord(1, "public/default", end=PeerEnd.UNREACHABLE, reason="Connection refused")
    second = report([row(1, 4.5, 4.6)], (lost, peer(3, 3.05, PeerEnd.CLOSED)), connections_lost=2)
    # When
    found = figures(first, second)
    # Then
    assert (found.peers, found.unreachable, found.closed) == (4, 1, 2)
    assert found.first_closed_after_seconds == pytest.approx(2.0)
    assert found.last_closed_after_seconds == pytest.approx(3.0)
    assert found.gone_seconds == 5.05
    assert found.connections_lost == 2


def test_without_peers_everything_was_before() -> None:
    found = figures(report([row(0, 0.0, 0.1), row(0, 5.0, 5.1)]))
    assert (found.before.requests, found.stuck.requests, found.after.requests) == (2, 0, 0)
    assert (found.asked_seconds, found.nobody_answered_seconds) == (None, None)
    assert (found.stuck.p50_seconds, found.stuck.p99_seconds) == (None, None)


def test_the_models_of_both_profiles_say_what_they_are() -> None:
    assert figures(starved()).stuck.answered_in_phase == 0
    assert figures(starved()).stuck.clients_refused == 10
    assert figures(unharmed()).stuck.answered_in_phase == 60

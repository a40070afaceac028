from __future__ import annotations

import pyarrow as pa

from loadgen.clients.answers import AnswerChecker
from loadgen.clients.records import (
    CLIENT_ROWS,
    Outcome,
    RequestRecord,
    TaskFacts,
    TaskReport,
    report_rows,
)
from loadgen.scenario import NamespaceExpectation
from tests.support.peers.stand_in_broker import listing_body, topic_names

CLIENT = {
    "client": 0, "task": 2, "group": "java", "family": "java-watch", "namespace": "load/ns",
    "intended_start_seconds": 0.0, "connected_seconds": None, "back_seconds": None,
    "outcome": "unreachable", "reason": "refused", "listings": 0, "reconnects": 2,
}  # fmt: skip
NAMES = topic_names("load/ns", 5)


def answered(names: list[str], expected_topics: int) -> RequestRecord:
    checker = AnswerChecker(filtered=False)
    body = checker.body(NamespaceExpectation(name="load/ns", topics=expected_topics))
    body.feed(memoryview(listing_body(names)))
    return RequestRecord(
        3, "load/ns", 0.0, 0.1, 0.2, 0.3, Outcome.ANSWERED, answer=checker.submit(body)
    )


def test_an_answer_is_verified_when_the_rows_are_made() -> None:
    # When
    rows = report_rows(1, [answered(NAMES, 5), answered(NAMES, 6)]).to_pylist()
    # Then
    assert [row["outcome"] for row in rows] == ["answered", "wrong"]
    assert rows[1]["reason"] == "the answer for load/ns lists 5 topics, expected 6"
    assert [row["topics"] for row in rows] == [5, 5]


def test_a_report_survives_its_journey_as_bytes() -> None:
    # Given
    record = RequestRecord(0, "load/ns", 0.0, outcome=Outcome.UNREACHABLE, reason="refused")
    details = ({"peer": 4, "asked_seconds": 1.0, "end": None},)
    facts = TaskFacts(2, 1, 0.01, 0.02, 1e9, attempt=0, connections_lost=3)
    clients = pa.Table.from_pylist([CLIENT], schema=CLIENT_ROWS)
    report = TaskReport(report_rows(2, [record]), facts, details, clients)
    # When
    copy = TaskReport.from_bytes(report.to_bytes())
    # Then
    assert copy.facts == report.facts
    assert copy.details == report.details
    assert copy.rows.equals(report.rows)
    assert copy.clients.equals(clients)
    assert copy.rows.to_pylist()[0]["started_seconds"] is None

"""The outcome of a storm counts what servers refused, and not what its end cut."""

from __future__ import annotations

from loadgen.advice.goal import Goal, Outcome
from loadgen.advice.outcome import outcome_of
from loadgen.documents.reading import parse_document
from loadgen.virtual.simulation import run_in_virtual_time

# A list takes a client 1.4 s, so that the first polls again before the last is back.
STORM = """
kind: discovery
cluster: {topics: {namespaces: 1, per_namespace: 3000}}
load:
  groups:
    - name: all
      family: java-poll
      clients: 8
      period_seconds: 2s
      arrivals: {kind: constant, per_second: 2}
      reader: {rate_bytes_per_second: 200kB/s, receive_buffer_bytes: 4096}
  phases: {measure_seconds: SECONDS, drain_seconds: 0}
"""


def outcome(seconds: str) -> Outcome:
    document = parse_document(STORM.replace("SECONDS", seconds))
    (report,) = run_in_virtual_time(document.scenario, document.cluster).reports
    ends = zip(*(report.rows[name].to_pylist() for name in ("operation", "reason")), strict=True)
    assert ("list", "not answered when the run ended") in set(ends)
    return outcome_of(Goal(), report.rows, report.clients, {})


def test_a_poll_that_the_end_cut_was_not_refused() -> None:
    found = outcome("60s")
    assert (found.back, found.refused, found.reasons) == (8, 0, {})


def test_who_was_not_back_by_the_end_counts() -> None:
    found = outcome("1s")
    assert (found.back, found.refused) == (0, found.requests)

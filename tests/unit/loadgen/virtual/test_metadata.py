"""First requests of many namespaces hold heap at once if listings wait for a metadata store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadgen.documents.reading import parse_document
from loadgen.sweeps.variation import with_values
from loadgen.virtual.service_times import PULSAR
from loadgen.virtual.simulation import run_in_virtual_time

# 150 first estimates of 10,240 bytes do not fit 1 MB; a list counts 27 kB.
DOCUMENT = parse_document("""
kind: discovery
cluster:
  profile: pulsar
  broker:
    maxTopicListInFlightHeapMemSizeMB: 1
    maxTopicListInFlightHeapMemSizePermitsAcquireTimeoutMillis: 1000
  topics: {namespaces: 150, per_namespace: 200}
load:
  groups: [{name: all, clients: 150}]
  phases: {measure_seconds: 5}
""")


@pytest.mark.parametrize(("values", "stall"), [({"service_times": "pulsar"}, True), ({}, False)])
def test_first_requests_that_overlap_wait_for_each_other_where_the_document_says_real_pulsar(
    values: dict[str, str], *, stall: bool
) -> None:
    # Given
    document = with_values(DOCUMENT, values)
    # When
    run = run_in_virtual_time(document.scenario, document.cluster)
    # Then
    outcomes = run.reports[0].rows["outcome"].to_pylist()
    assert len(outcomes) == 150
    assert ("refused" in outcomes) is stall


def test_the_first_lookup_of_a_namespace_costs_a_broker_more_once() -> None:
    # Given: two clients for each of five namespaces
    document = parse_document("""
kind: discovery
cluster:
  topics: {namespaces: 5, per_namespace: 10}
load:
  groups: [{name: all, clients: 10, family: java-poll}]
""")
    times = replace(PULSAR, first_lookup=1.0)
    # When
    run = run_in_virtual_time(document.scenario, document.cluster, times=times)
    # Then
    rows = run.reports[0].rows.to_pylist()
    last = max(row["finished_seconds"] for row in rows if row["operation"] == "lookup")
    assert 5.0 < last < 5.1

"""First requests of many namespaces hold heap simultaneously if listings wait for a metadata
store.
"""

import pytest

from loadgen.documents.model import Document
from loadgen.documents.service_times import PULSAR
from loadgen.places.virtual import run_in_virtual_time


@pytest.mark.parametrize(("service_times", "stall"), [("pulsar", True), ("floodgate", False)])
def test_overlapping_first_listings_are_refused_only_with_pulsars_service_times(
    service_times: str, *, stall: bool
) -> None:
    # 150 first estimates of 10,240 bytes do not fit 1 MB; a list counts 27 kB.
    broker = {
        "maxTopicListInFlightHeapMemSizeMB": 1,
        "maxTopicListInFlightHeapMemSizePermitsAcquireTimeoutMillis": 1000,
    }
    servers = {"profile": "pulsar", "broker": broker, "service_times": service_times}
    document = Document.model_validate(
        {
            "name": "x",
            "servers": servers,
            "topics": {"namespaces": 150, "per_namespace": 200},
            "clients": [{"name": "all", "do": "list", "count": 150}],
            "phases": {"measure": 5},
        }
    )
    run = run_in_virtual_time(document)
    outcomes = [row.outcome for row in run.rows.requests]
    assert len(outcomes) == 150
    assert ("refused" in outcomes) is stall


def test_the_time_of_a_lookup_does_not_depend_on_the_number_of_topics() -> None:
    group = {"name": "all", "do": "lookup", "count": 1, "every": "100ms"}
    servers = {"service_times": {**dict(PULSAR), "first_lookup": 0}}
    slowest = []
    for topics in (10, 20_000):
        named = {"namespaces": 1, "per_namespace": topics}
        of_document = {"name": "x", "topics": named, "clients": [group], "servers": servers}
        document = Document.model_validate({**of_document, "phases": {"measure": 1}})
        run = run_in_virtual_time(document)
        slowest.append(max((row.done or 0.0) - (row.sent or 0.0) for row in run.rows.requests))
    assert slowest[0] == pytest.approx(slowest[1])
    assert slowest[1] < 0.001


def test_the_first_lookup_of_each_namespace_takes_extra_time_once() -> None:
    # Two clients for each of five namespaces
    group = {"name": "all", "do": "discover", "library": "java-poll", "count": 10}
    document = Document.model_validate(
        {
            "name": "x",
            "servers": {"service_times": {**dict(PULSAR), "first_lookup": 1.0}},
            "topics": {"namespaces": 5, "per_namespace": 10},
            "clients": [group],
        }
    )
    run = run_in_virtual_time(document)
    lookups = [row.done or 0.0 for row in run.rows.requests if row.operation == "lookup"]
    assert 5.0 < max(lookups) < 5.1


@pytest.mark.parametrize(("pattern", "seconds"), [(None, 1.0), ("x.*", 3.0)])
def test_without_a_wait_for_the_store_a_listing_takes_the_time_of_its_names(
    pattern, seconds
) -> None:
    # A broker without a measured wait, and 10 names of 100 ms, matched in 200
    times = PULSAR.model_copy(update={"list_wait": 0.0, "list_name": 0.1, "match_name": 0.2})
    group = {"name": "all", "do": "list", "count": 1, "pattern": pattern}
    document = Document.model_validate(
        {
            "name": "x",
            "topics": {"namespaces": 1, "per_namespace": 10},
            "servers": {"profile": "pulsar", "service_times": times.model_dump()},
            "clients": [group],
        }
    )
    (row,) = run_in_virtual_time(document).rows.requests
    assert row.done == pytest.approx(seconds, rel=0.02)


@pytest.mark.parametrize(("profile", "seconds"), [("pulsar", 2.0), ("floodgate", 1.0)])
def test_only_in_profile_pulsar_each_watch_matches_the_names_separately(profile, seconds) -> None:
    # Four watches of 10 names, each matched in 100 ms, by two threads
    each = {"match_name": 0.1, "watch_name": 0.1, "threads": 2}
    times = PULSAR.model_copy(update=each)
    group = {"name": "all", "do": "watch", "count": 4}
    document = Document.model_validate(
        {
            "name": "x",
            "topics": {"namespaces": 1, "per_namespace": 10},
            "servers": {"profile": profile, "service_times": times.model_dump()},
            "clients": [group],
            "phases": {"measure": 5},
        }
    )
    rows = run_in_virtual_time(document).rows.requests
    assert max(row.done or 0.0 for row in rows if row.operation == "watch") == pytest.approx(
        seconds, rel=0.05
    )


def test_simultaneous_listings_of_a_namespace_share_the_reading_of_names() -> None:
    # Ten simultaneous lists of 10 names, each read in 100 ms
    times = PULSAR.model_copy(update={"list_name": 0.1})
    document = Document.model_validate(
        {
            "name": "x",
            "topics": {"namespaces": 1, "per_namespace": 10},
            "servers": {"profile": "pulsar", "service_times": times.model_dump()},
            "clients": [{"name": "all", "do": "list", "count": 10}],
            "phases": {"measure": 30},
        }
    )
    # The first is read alone, for the list's size
    rows = run_in_virtual_time(document).rows.requests
    assert max(row.done or 0.0 for row in rows) < 2.1


def test_answers_to_listings_are_built_separately_on_all_threads() -> None:
    # Four lists of 10 names, each answered for 50 ms a name, by two threads
    free = {"list_wait": 0.0, "list_name": 0.0, "answer_name": 0.05, "threads": 2}
    document = Document.model_validate(
        {
            "name": "x",
            "topics": {"namespaces": 1, "per_namespace": 10},
            "servers": {"profile": "pulsar", "service_times": dict(PULSAR) | free},
            "clients": [{"name": "all", "do": "list", "count": 4}],
        }
    )
    rows = run_in_virtual_time(document).rows.requests
    # An answer has 1,015 bytes: of ten names
    assert sorted(row.done or 0.0 for row in rows) == pytest.approx(
        2 * [0.51] + 2 * [1.02], rel=0.02
    )


def test_an_answer_is_built_before_it_waits_for_direct_memory() -> None:
    # Two answers of 0.6 MB, each built in 0.6 s; 1 MB is enough for one of them.
    free = {"list_wait": 0.0, "list_name": 0.0, "answer_name": 1e-4, "threads": 2}
    broker = {"maxTopicListInFlightDirectMemSizeMB": 1}
    servers = {"profile": "pulsar", "service_times": dict(PULSAR) | free, "broker": broker}
    document = Document.model_validate(
        {
            "name": "x",
            "topics": {"namespaces": 1, "per_namespace": 6_000},
            "servers": servers,
            "clients": [{"name": "all", "do": "list", "count": 2}],
        }
    )
    rows = run_in_virtual_time(document).rows.requests
    assert max(row.done or 0.0 for row in rows) == pytest.approx(0.6, rel=0.1)


def slow_matches(groups: list[dict[str, object]]) -> dict[str, float]:
    """Return the time of each group's last answer, with names matched in 100 ms each."""
    each = {"match_name": 0.1, "watch_name": 0.1, "threads": 2, "list_name": 0.0}
    document = Document.model_validate(
        {
            "name": "x",
            "topics": {"namespaces": 1, "per_namespace": 10},
            "servers": {"profile": "pulsar", "service_times": dict(PULSAR) | each},
            "clients": groups,
            "phases": {"measure": 30},
        }
    )
    rows = run_in_virtual_time(document).rows.requests
    return {row.group: max(r.done or 0.0 for r in rows if r.group == row.group) for row in rows}


def test_patterns_of_lists_and_watches_are_matched_in_parallel() -> None:
    lists = {"name": "lists", "do": "list", "count": 4, "pattern": "x.*"}
    watches = {"name": "watches", "do": "watch", "count": 4}
    last = slow_matches([lists]) | slow_matches([watches])
    assert last == pytest.approx({"lists": 2.0, "watches": 2.0}, rel=0.05)


def test_the_answer_to_a_listing_waits_for_the_matches_of_earlier_watches() -> None:
    # Given eight watches, matched for four seconds by two event loops, and then a list
    watches = {"name": "watches", "do": "watch", "count": 8}
    late = {"name": "late", "do": "list", "count": 1, "after": 1.0}
    last = slow_matches([watches, late])
    assert last["late"] == pytest.approx(4.0, rel=0.05)

"""First requests of many namespaces hold heap simultaneously if listings wait for a metadata
store.
"""

from typing import Any

import pytest

from loadgen.documents.model import Document
from loadgen.documents.service_times import PULSAR
from loadgen.places.virtual import run_in_virtual_time


def requests_of(
    clients: dict[str, Any] | list[dict[str, Any]],
    *,
    topics: int = 10,
    namespaces: int = 1,
    profile: str = "pulsar",
    broker: dict[str, Any] | None = None,
    service_times: str | None = None,
    **times: Any,
) -> list[Any]:
    """Run clients for 30 s against a broker with some service times; return their requests."""
    servers = {"profile": profile, "broker": broker or {}}
    document = Document.model_validate(
        {
            "name": "x",
            "servers": {**servers, "service_times": service_times or dict(PULSAR) | times},
            "topics": {"namespaces": namespaces, "per_namespace": topics},
            "clients": clients if isinstance(clients, list) else [{"name": "all", **clients}],
            "phases": {"measure": 30},
        }
    )
    return run_in_virtual_time(document).rows.requests


def last(requests: list[Any], **wanted: str) -> float:
    """Return when the last request of a group, or of an operation, was done."""
    ((of, value),) = wanted.items() or (("outcome", "answered"),)
    return max(row.done or 0.0 for row in requests if getattr(row, of) == value)


@pytest.mark.parametrize(("service_times", "stall"), [("pulsar", True), ("floodgate", False)])
def test_overlapping_first_listings_are_refused_only_with_pulsars_service_times(
    service_times: str, *, stall: bool
) -> None:
    # 150 first estimates of 10,240 bytes do not fit 1 MB; a list counts 27 kB.
    broker = {
        "maxTopicListInFlightHeapMemSizeMB": 1,
        "maxTopicListInFlightHeapMemSizePermitsAcquireTimeoutMillis": 1000,
    }
    of = {"namespaces": 150, "broker": broker, "service_times": service_times}
    requests = requests_of({"do": "list", "count": 150}, topics=200, **of)
    assert len(requests) == 150
    assert any(row.outcome == "refused" for row in requests) is stall


def test_the_time_of_a_lookup_does_not_depend_on_the_number_of_topics() -> None:
    lookups = {"do": "lookup", "count": 1, "every": "100ms"}
    slowest = []
    for topics in (10, 20_000):
        requests = requests_of(lookups, topics=topics, profile="floodgate", first_lookup=0)
        slowest.append(max((row.done or 0.0) - (row.sent or 0.0) for row in requests))
    assert slowest[0] == pytest.approx(slowest[1])
    assert slowest[1] < 0.001


def test_the_first_lookup_of_each_namespace_takes_extra_time_once() -> None:
    # Two clients for each of five namespaces
    clients = {"do": "discover", "library": "java-poll", "count": 10}
    requests = requests_of(clients, namespaces=5, profile="floodgate", first_lookup=1.0)
    assert 5.0 < last(requests, operation="lookup") < 5.1


@pytest.mark.parametrize(("pattern", "seconds"), [(None, 1.0), ("x.*", 3.0)])
def test_without_a_wait_for_the_store_a_listing_takes_the_time_of_its_names(
    pattern, seconds
) -> None:
    # A broker without a measured wait, and 10 names of 100 ms, matched in 200
    times = {"list_wait": 0.0, "list_name": 0.1, "match_name": 0.2}
    requests = requests_of({"do": "list", "count": 1, "pattern": pattern}, **times)
    assert last(requests) == pytest.approx(seconds, rel=0.02)


@pytest.mark.parametrize(("profile", "seconds"), [("pulsar", 2.0), ("floodgate", 1.0)])
def test_only_in_profile_pulsar_each_watch_matches_the_names_separately(profile, seconds) -> None:
    # Four watches of 10 names, each matched in 100 ms, by two threads
    times = {"match_name": 0.1, "watch_name": 0.1, "threads": 2}
    requests = requests_of({"do": "watch", "count": 4}, profile=profile, **times)
    assert last(requests, operation="watch") == pytest.approx(seconds, rel=0.05)


def test_simultaneous_listings_of_a_namespace_share_the_reading_of_names() -> None:
    # Ten simultaneous lists of 10 names, each read in 100 ms; the first is read alone, for the size
    assert last(requests_of({"do": "list", "count": 10}, list_name=0.1)) < 2.1


def test_answers_to_listings_are_built_separately_on_all_threads() -> None:
    # Four lists of 10 names, each answered for 50 ms a name, by two threads
    times = {"list_wait": 0.0, "list_name": 0.0, "answer_name": 0.05, "threads": 2}
    requests = requests_of({"do": "list", "count": 4}, **times)
    # An answer has 1,015 bytes: of ten names
    done = sorted(row.done or 0.0 for row in requests)
    assert done == pytest.approx(2 * [0.51] + 2 * [1.02], rel=0.02)


def test_an_answer_is_built_before_it_waits_for_direct_memory() -> None:
    # Two answers of 0.6 MB, each built in 0.6 s; 1 MB is enough for one of them.
    times = {"list_wait": 0.0, "list_name": 0.0, "answer_name": 1e-4, "threads": 2}
    broker = {"maxTopicListInFlightDirectMemSizeMB": 1}
    requests = requests_of({"do": "list", "count": 2}, topics=6_000, broker=broker, **times)
    assert last(requests) == pytest.approx(0.6, rel=0.1)


MATCHED = {"match_name": 0.1, "watch_name": 0.1, "threads": 2, "list_name": 0.0}


def test_patterns_of_lists_and_watches_are_matched_in_parallel() -> None:
    lists = requests_of({"do": "list", "count": 4, "pattern": "x.*"}, **MATCHED)
    watches = requests_of({"do": "watch", "count": 4}, **MATCHED)
    assert [last(lists), last(watches)] == pytest.approx([2.0, 2.0], rel=0.05)


def test_the_answer_to_a_listing_waits_for_the_matches_of_earlier_watches() -> None:
    # Eight watches, matched for four seconds by two event loops, and then a list
    watches = {"name": "watches", "do": "watch", "count": 8}
    late = {"name": "late", "do": "list", "count": 1, "after": 1.0}
    assert last(requests_of([watches, late], **MATCHED), group="late") == pytest.approx(4, rel=0.05)

"""The question becomes a document, and the document's run an outcome.

Namespaces are tried with true sizes; for many sizes number, total and largest are true.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.documents.model import Topics
from loadgen.documents.reading import parse_document, read_document
from loadgen.documents.service_times import PULSAR
from loadgen.engine.link import RUN_ENDED
from loadgen.results.expectations import parse_expectation
from loadgen.studies.advise.goal import Goal, Outcome, outcome_of
from loadgen.studies.advise.namespaces import shapes_of_topics
from loadgen.studies.advise.question import (
    MOST_SIZES,
    NamespaceShape,
    Question,
    document_text,
    listing_groups,
    size_classes,
)
from tests.support.runs.recorded_run import event, record_run, request, sample
from tests.unit.loadgen.studies.advise.asked import clients, question


@given(st.lists(st.integers(1, 5_000), min_size=1, max_size=200))
def test_few_size_classes_keep_the_number_the_total_and_the_largest_size(sizes: list[int]) -> None:
    classes = size_classes(sizes)
    found = [size for count, size in classes for _ in range(count)]
    assert found == sorted(found, reverse=True)
    assert (len(found), sum(found)) == (len(sizes), sum(sizes))
    assert found.count(max(sizes)) >= sizes.count(max(sizes))
    assert max(found) == max(sizes)
    assert len(classes) <= 1 + 2 * MOST_SIZES
    if len(set(sizes)) <= MOST_SIZES:
        assert found == sorted(sizes, reverse=True)


def shape(name: str, topics: int, length: int) -> NamespaceShape:
    return NamespaceShape(name, topics, topics * length)


def topics_of(asked: Question) -> Topics:
    return parse_document(document_text(asked, asked.today)).topics


def test_a_storm_has_the_true_sizes_and_the_true_length_of_names() -> None:
    shapes = (shape("acme/b", 40, 50), shape("acme/a", 120, 50), shape("acme/c", 40, 50))
    topics = topics_of(question(clients(3), shapes=shapes))
    assert topics.sizes == (120, 40, 40)
    assert topics.names == ("acme/a", "acme/b", "acme/c")
    assert topics.mean_name_bytes == 50


def test_a_list_is_charged_as_in_reality_if_its_names_are_longer_than_the_mean() -> None:
    long, short = shape("acme/long", 1_000, 200), shape("acme/short", 1_000, 100)
    topics = topics_of(question(clients(2), shapes=(short, long)))
    charged = [size * (topics.mean_name_bytes + 32) for size in topics.sizes]
    for found, wanted in zip(charged, (long, short), strict=True):
        assert abs(found / wanted.charged_bytes - 1) < 0.01


def test_fewer_clients_than_namespaces_list_the_largest_namespaces() -> None:
    shapes = tuple(shape(f"acme/ns{size}", size, 60) for size in range(1, 101))
    asked = question(clients(2), clients(3, "cpp"), shapes=shapes)
    assert topics_of(asked).sizes == (100, 99, 98)


def test_a_storm_has_the_listing_clients_of_its_scenario() -> None:
    more = "clients+={name: beside, do: publish, count: 2}"
    settings = [
        "clients.go.read.rate=10kB/s",
        "clients.cpp.arrive={kind: constant, rate: 10}",
        more,
    ]
    document = read_document("restart-storm", settings)
    groups, shapes = listing_groups(document), shapes_of_topics(document.topics)
    asked = question(*groups, shapes=shapes)
    storm = parse_document(document_text(asked, asked.today))
    assert (len(shapes), asked.largest.topics, asked.spread_seconds) == (10, 5000, 3.9)
    found = {each.name: each for each in storm.clients}
    assert asked.families == dict.fromkeys(found, 40)
    assert (found["go"].read.rate, found["go"].read.buffer) == (10_000, 65_536)
    assert found["cpp"].arrive == document.clients[3].arrive
    assert storm.phases.measure == 3.9 + 90


def test_requests_cut_by_the_end_of_the_run_do_not_count_as_refused(tmp_path: Path) -> None:
    # A client is back and polls when the run ends; a client is refused; a client came back too late
    requests = [
        request(client=0),
        request(client=0, outcome="timeout", reason=RUN_ENDED),
        request(client=1, outcome="refused", reason="TooManyRequests"),
        request(client=2),
    ]
    events = [event("back", client=0, value=2.0), event("back", client=2, value=70.0)]
    samples = [sample("heap.used", 1, 5.0), sample("direct.used", 1, 7.0)]
    samples += [sample("direct.high", 1, 9.0)]
    found = outcome_of(Goal(), record_run(tmp_path / "r", requests, events, samples))
    assert found == Outcome(3, 1, 70.0, 3, 1, {"broker": 14.0}, {"TooManyRequests": 1})
    assert Goal().misses(found) == ["67 % late", "33 % refused"]


def test_a_storm_has_the_further_keys_of_its_existing_servers_only() -> None:
    more = {"broker": {"maxConcurrentLookupRequest": "2"}, "proxy": {"none": "1"}}
    asked = question(more=more)
    servers = parse_document(document_text(asked, asked.today)).servers
    assert servers.broker["maxConcurrentLookupRequest"] == "2"
    assert servers.proxy is None


def test_a_goal_without_requirements_yields_a_valid_document() -> None:
    asked = question(goal=Goal(refused_share=1.0))
    parse_document(document_text(asked, asked.today), check_expectation=parse_expectation)


def test_measured_service_times_replace_the_times_of_the_profile() -> None:
    slow = PULSAR.model_copy(update={"list_name": 5e-6})
    asked = question(times=slow)
    storm = parse_document(document_text(asked, asked.today))
    assert storm.servers.service_times == slow


@pytest.mark.parametrize(
    ("waiting", "direct", "busy", "stalled"),
    [
        (300, 0, 0.1, 7),
        (30, 0, 0.1, 0),  # Few wait.
        (300, 5, 0.1, 0),  # Readers hold direct memory.
        (300, 0, 1.0, 0),  # The processor is the bottleneck.
    ],
)
def test_a_stall_is_hundreds_of_heap_waiters_without_answers_at_an_idle_broker(
    waiting: int, direct: int, busy: float, stalled: int, tmp_path: Path
) -> None:
    # A hundred answers in the first second and in the last of ten, none between
    requests = [request(done=moment) for moment in (0.5, 9.5) for _ in range(100)]
    samples = [
        row
        for second in range(11)
        for row in (
            sample("heap.waiting", second, waiting if 1 <= second <= 8 else 0),
            sample("direct.waiting", second, direct),
            sample("cpu.seconds", second, busy * second),
        )
    ]
    found = outcome_of(Goal(), record_run(tmp_path / "r", requests, samples=samples))
    assert found.stalled_seconds == stalled

"""What no setting can undercut: the largest answer, the burst, and a client's patience."""

from __future__ import annotations

import pytest

from limiter.memory.size_estimate import estimate_topic_list_bytes
from loadgen.studies.advise.limits import (
    Limits,
    Setting,
    derived,
    guess,
    least_limits,
    needed_queue,
)
from loadgen.studies.advise.question import Goal, NamespaceShape, Readers, Workload
from loadgen.units import MB_BYTES
from proto import PulsarApi_pb2 as pb

BIG = NamespaceShape("acme/big", 40_000, 40_000 * 95)
SMALL = NamespaceShape("acme/small", 100, 10_000)


def workload(**changes: object) -> Workload:
    values = {"namespaces": (SMALL, BIG), "families": {"once": 40}, **changes}
    return Workload(**values)  # type: ignore[arg-type]


def answer_size(names: list[str]) -> int:
    answer = pb.CommandGetTopicsOfNamespaceResponse(request_id=1, topics=names)
    answer.topics_hash = "00000000"
    kind = pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE
    return pb.BaseCommand(type=kind, getTopicsOfNamespaceResponse=answer).ByteSize()


@pytest.mark.parametrize("length", [100, 200])
def test_a_listing_counts_what_the_servers_charge_for_it(length: int) -> None:
    # Given
    names = [f"persistent://acme/big/{number:05d}".ljust(length, "x") for number in range(500)]
    # When
    shape = NamespaceShape("acme/big", len(names), sum(map(len, names)))
    # Then
    assert shape.charged_bytes == estimate_topic_list_bytes(names)
    assert 0 <= shape.answer_bytes - answer_size(names) < 40


def test_no_limit_is_below_the_largest_answer() -> None:
    # When
    least = least_limits(workload().largest)
    # Then
    assert (least.heap_mb, least.direct_mb) == (5, 4)
    assert least.heap_mb * MB_BYTES >= BIG.charged_bytes > (least.heap_mb - 1) * MB_BYTES


def test_direct_memory_is_guessed_by_what_readers_hold_and_how_long() -> None:
    # Given: 40 readers that hold 4 MB for 8 s each, within 64 s
    slow = workload(namespaces=(BIG,), readers=Readers(rate=500_000, network_bytes=0))
    # When
    setting = guess(slow, Goal(back_within_seconds=64), proxy=False)
    # Then
    held = 40 * BIG.answer_bytes * BIG.answer_bytes / 500_000
    assert setting.broker.direct_mb == -(-held // (64 * MB_BYTES))


@pytest.mark.parametrize("proxy", [None, Limits()])
@pytest.mark.parametrize("direct_first", [True, False])
def test_all_waits_of_a_request_end_before_its_client_gives_up(
    proxy: Limits | None, *, direct_first: bool
) -> None:
    # Given: an answer takes 8 s to read
    slow = workload(readers=Readers(rate=500_000))
    # When
    setting = derived(slow, Setting(Limits(), proxy), waits_for_direct_first=direct_first)
    # Then
    waits = sum(
        limits.heap_timeout_millis + limits.direct_timeout_millis
        for limits in map(setting.of, setting.servers)
    )
    assert 18_000 < waits < 1000 * (30 - BIG.answer_bytes / 500_000)


@pytest.mark.parametrize(
    ("clients", "places"), [(40, 10_000), (10_001, 11_000), (123_456, 130_000)]
)
def test_a_queue_takes_the_whole_burst(clients: int, places: int) -> None:
    assert needed_queue(workload(families={"go": clients})) == places

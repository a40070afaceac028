"""Where no limit helps, the advice says so with the figure, and says where the switch hangs."""

from __future__ import annotations

import pytest

from loadgen.studies.advise.advice import obstacles, switch_warnings
from loadgen.studies.advise.limits import Limits
from loadgen.studies.advise.question import Goal, NamespaceShape, Readers, Workload

MEGABYTE = NamespaceShape("acme/orders", 10_000, 980_000)
# What a real broker was seen to send though a frame may have 5,253,116 bytes.
HUGE = NamespaceShape("acme/huge", 60_000, 5_726_658)


def load(*shapes: NamespaceShape, clients: int = 1000, **changes: object) -> Workload:
    families = {"java-watch": clients}
    return Workload(shapes or (MEGABYTE,), families, **changes)  # type: ignore[arg-type]


def test_nothing_stands_in_the_way_of_a_goal_that_can_be_met() -> None:
    assert obstacles(load(), Goal(), "pulsar", proxy=False) == []


@pytest.mark.parametrize(
    ("proxy", "fate"), [(False, "clients close the connection"), (True, "ServiceNotReady")]
)
def test_an_answer_above_the_frame_limit_is_helped_by_max_message_size_alone(
    fate: str, *, proxy: bool
) -> None:
    # When
    first, then = obstacles(load(MEGABYTE, HUGE), Goal(), "pulsar", proxy=proxy)
    # Then
    assert "Nothing helps acme/huge but maxMessageSize" in first
    assert "5,846,698 bytes, and a frame at most 5,253,116" in first
    assert fate in first
    assert "With maxMessageSize=6291456" in then
    assert "at least 8 MB of heap and 6 MB of direct memory" in then
    assert ("proxy is not told" in then) is proxy


def test_a_larger_max_message_size_helps() -> None:
    # Given
    with_it = load(HUGE, max_message_bytes=6_291_456)
    # Then
    assert obstacles(with_it, Goal(), "pulsar", proxy=False) == []


def test_a_budget_below_one_answer_holds_none() -> None:
    # When
    found = obstacles(load(), Goal(accounted_mb=2), "pulsar", proxy=False)
    # Then
    assert len(found) == 1
    assert "2 MB hold no single answer for acme/orders: it takes 2 MB of heap and 1 MB" in found[0]


@pytest.mark.parametrize(
    ("rate", "against"), [(10_000, "60 s the goal gives them"), (25_000, "30 s they wait")]
)
def test_readers_that_are_too_slow_for_the_goal_are_named_with_their_time(
    rate: float, against: str
) -> None:
    # When
    found = obstacles(load(readers=Readers(rate=rate)), Goal(), "pulsar", proxy=False)
    # Then
    assert len(found) == 1
    assert f"at {rate // 1000}kB/s 1,000 clients take" in found[0]
    assert against in found[0]


def test_only_clients_of_namespaces_that_are_too_large_are_too_slow() -> None:
    # Given: 1 MB in 10 s, and 10 kB at once
    small = NamespaceShape("acme/small", 100, 10_000)
    mixed = load(small, MEGABYTE, readers=Readers(rate=100_000))
    # Then
    (found,) = obstacles(mixed, Goal(back_within_seconds=5), "pulsar", proxy=False)
    assert "500 clients take 10.0 s or more" in found
    half = Goal(back_within_seconds=5, refused_share=0.5)
    assert obstacles(mixed, half, "pulsar", proxy=False) == []


def test_slow_readers_that_pin_more_than_direct_memory_stop_a_pulsar() -> None:
    # Given: 100 of 100,000 never read 1 MB each
    readers = Readers(slow_share=0.001)
    crowd = load(clients=100_000, readers=readers)
    goal = Goal(refused_share=0.001, accounted_mb=64)
    # Then
    (found,) = obstacles(crowd, goal, "pulsar", proxy=False)
    assert "100 slow readers pin 95 MB" in found
    assert "64 MB accounted leave 62 MB" in found
    assert obstacles(crowd, goal, "floodgate", proxy=False) == []


def test_clients_that_never_read_do_not_come_back() -> None:
    # When
    found = obstacles(load(readers=Readers(slow_share=0.05)), Goal(), "floodgate", proxy=False)
    # Then
    assert len(found) == 1
    assert "50 clients (5 %) never read" in found[0]


def test_the_switch_is_warned_of_with_the_answers_that_it_takes_to_hang_a_pulsar() -> None:
    # When
    found = switch_warnings(load(), Limits(direct_mb=10), "pulsar", asked=True)
    # Then
    assert found[0].startswith("Your broker.conf has pulsarChannelPauseReceiving")
    assert "10 unread answers of 1.0 MB" in found[1]
    assert switch_warnings(load(), Limits(pause=True), "floodgate", asked=True) == []


@pytest.mark.parametrize("unlimited", [0, -1])
def test_without_a_limit_of_direct_memory_no_answers_are_counted(unlimited: int) -> None:
    assert switch_warnings(load(), Limits(direct_mb=unlimited), "pulsar", asked=False) == []


def test_slow_clients_ask_for_the_largest_namespaces_as_well() -> None:
    # Given
    shapes = [NamespaceShape(f"acme/{size}", size, 100 * size) for size in range(1, 11)]
    # Then: seven of them for as many namespaces, three for the first of these again
    listed = load(*shapes, clients=10, readers=Readers(slow_share=0.3)).listed
    assert [each.topics for each in listed] == [10, 9, 8, 7, 6, 5, 4]


def test_a_high_mark_that_refuses_every_connection_is_warned_of() -> None:
    # When
    found = switch_warnings(load(), Limits(high_water_mark=16_384), "pulsar", asked=False)
    # Then
    assert "pulsarChannelWriteBufferHighWaterMark=16384 is below Netty's low mark" in found[-1]

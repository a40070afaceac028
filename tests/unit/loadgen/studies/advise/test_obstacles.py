"""Where no limit helps, the advice gives the figure, and warns where the switch hangs a Pulsar."""

from dataclasses import replace

import pytest

from loadgen.studies.advise.goal import Goal
from loadgen.studies.advise.limits import Limits, Setting
from loadgen.studies.advise.obstacles import obstacles, switch_warnings, too_many_slow
from loadgen.studies.advise.question import NamespaceShape, Question
from tests.unit.loadgen.studies.advise.asked import clients, question

MEGABYTE = NamespaceShape("acme/orders", 10_000, 980_000)
# Sent by a real broker although a frame may have 5,253,116 bytes.
HUGE = NamespaceShape("acme/huge", 60_000, 5_726_658)


def load(*shapes: NamespaceShape, count: int = 1000, slow: int = 0, **said: object) -> Question:
    """Return Java clients, including non-reading clients."""
    read = {"rate": said.pop("rate", None)}
    groups = [clients(count - slow, "java-watch", **read)]
    groups += [clients(slow, "cpp", never=True)] if slow else []
    return question(*groups, shapes=shapes or (MEGABYTE,), **said)


def test_an_achievable_goal_has_no_obstacles() -> None:
    assert obstacles(load()) == ()


@pytest.mark.parametrize(
    ("proxy", "fate"), [(False, "clients close the connection"), (True, "ServiceNotReady")]
)
def test_an_answer_above_the_frame_limit_requires_a_larger_max_message_size(
    fate: str, *, proxy: bool
) -> None:
    today = Setting(Limits(), Limits() if proxy else None)
    first, then = obstacles(load(MEGABYTE, HUGE, today=today))
    assert "Nothing helps acme/huge but maxMessageSize" in first
    assert "5,846,698 bytes, and a frame at most 5,253,116" in first
    assert fate in first
    assert "With maxMessageSize=6291456" in then
    assert "at least 8 MB of heap and 6 MB of direct memory" in then
    assert ("proxy is not told" in then) is proxy


def test_a_larger_max_message_size_removes_the_obstacle() -> None:
    with_it = load(HUGE, max_message_bytes=6_291_456)
    assert obstacles(with_it) == ()


def test_a_budget_below_a_single_answer_is_an_obstacle() -> None:
    found = obstacles(load(goal=Goal(accounted_mb=2)))
    assert len(found) == 1
    assert "2 MB hold no single answer for acme/orders: it takes 2 MB of heap and 1 MB" in found[0]


def test_a_namespace_above_the_goals_memory_is_no_obstacle_if_its_clients_may_be_refused() -> None:
    small = tuple(NamespaceShape(f"acme/s{number}", 100, 9_500) for number in range(99))
    huge = NamespaceShape("acme/huge", 40_000, 3_800_000)
    asked = load(huge, *small, goal=Goal(accounted_mb=8))
    assert "8 MB hold no single answer for acme/huge" in obstacles(asked)[0]
    assert obstacles(replace(asked, goal=Goal(accounted_mb=8, refused_share=0.05))) == ()


@pytest.mark.parametrize(
    ("rate", "against"), [(10_000, "60 s the goal gives them"), (25_000, "30 s they wait")]
)
def test_readers_too_slow_for_the_goal_are_reported_with_their_time(rate, against) -> None:
    found = obstacles(load(rate=rate))
    assert len(found) == 1
    assert f"at {rate // 1000}kB/s 1,000 clients take" in found[0]
    assert against in found[0]


def test_only_slow_readers_of_large_namespaces_are_reported_as_too_slow() -> None:
    # 1 MB in 10 s, and 10 kB in one burst
    small = NamespaceShape("acme/small", 100, 10_000)
    mixed = load(small, MEGABYTE, rate=100_000, goal=Goal(back_within_seconds=5))
    (found,) = obstacles(mixed)
    assert "500 clients take 10.0 s or more" in found
    assert obstacles(replace(mixed, goal=Goal(5, refused_share=0.5))) == ()


def test_slow_readers_that_pin_more_than_the_direct_memory_block_a_pulsar() -> None:
    # 100 of 100,000 never read 1 MB each
    goal = Goal(refused_share=0.001, accounted_mb=64)
    crowd = load(count=100_000, slow=100, goal=goal)
    (found,) = too_many_slow(crowd)
    assert "100 slow readers pin 95 MB" in found
    assert "64 MB accounted leave 62 MB" in found
    assert not [*too_many_slow(replace(crowd, profile="floodgate"))]


def test_clients_that_never_read_are_an_obstacle() -> None:
    found = obstacles(load(slow=50, profile="floodgate"))
    assert len(found) == 1
    assert "50 clients (5 %) never read" in found[0]


def test_polite_clients_need_a_period_and_a_half_to_come_back() -> None:
    polite = question(clients(9, "polite"), shapes=(MEGABYTE,))
    (found,) = obstacles(polite)
    assert "back after 90 s whatever the limits: give them --back-within 100s" in found
    assert obstacles(replace(polite, goal=Goal(back_within_seconds=100))) == ()


def test_the_pause_switch_is_warned_of_with_the_unread_answers_that_hang_a_pulsar() -> None:
    asked = load(today=Setting(Limits(pause=True)))
    (found,) = switch_warnings(asked, Limits(direct_mb=10))
    assert "IfUnwritable=true (yours): 10 unread answers of 1.0 MB" in found
    assert not list(switch_warnings(replace(asked, profile="floodgate"), Limits(pause=True)))
    assert not list(switch_warnings(load(), Limits(direct_mb=10)))


@pytest.mark.parametrize("unlimited", [0, -1])
def test_without_a_direct_memory_limit_the_pause_switch_is_warned_of_once(unlimited: int) -> None:
    asked = load(today=Setting(Limits(pause=True)))
    assert len(list(switch_warnings(asked, Limits(direct_mb=unlimited)))) == 1

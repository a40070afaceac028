"""Lower bounds of settings: the largest answer, the burst, and a client's patience."""

import pytest

from limiter.memory.size_estimate import FIRST_ESTIMATE_BYTES, estimate_topic_list_bytes
from loadgen.studies.advise.bounds import (
    least_limits,
    needed_queue,
    room_for_grants,
    safe_limits,
    splits,
    start,
)
from loadgen.studies.advise.goal import Goal
from loadgen.studies.advise.limits import Limits, Setting
from loadgen.studies.advise.question import NamespaceShape
from loadgen.units import MB_BYTES
from proto import PulsarApi_pb2 as pb
from tests.unit.loadgen.studies.advise.asked import BIG, clients, question

SMALL = NamespaceShape("acme/small", 100, 10_000)


def answer_size(names: list[str]) -> int:
    answer = pb.CommandGetTopicsOfNamespaceResponse(request_id=1, topics=names)
    answer.topics_hash = "00000000"
    kind = pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE
    return pb.BaseCommand(type=kind, getTopicsOfNamespaceResponse=answer).ByteSize()


@pytest.mark.parametrize("length", [100, 200])
def test_the_computed_size_of_a_listing_equals_the_charge_of_the_servers(length: int) -> None:
    names = [f"persistent://acme/big/{number:05d}".ljust(length, "x") for number in range(500)]
    shape = NamespaceShape("acme/big", len(names), sum(map(len, names)))
    assert shape.charged_bytes == estimate_topic_list_bytes(names)
    assert 0 <= shape.answer_bytes - answer_size(names) < 40


def test_no_limit_is_below_the_largest_answer() -> None:
    least = least_limits((SMALL, BIG))
    assert (least.heap_mb, least.direct_mb) == (5, 4)
    assert least.heap_mb * MB_BYTES >= BIG.charged_bytes > (least.heap_mb - 1) * MB_BYTES


def test_direct_memory_holds_the_largest_answer_though_another_list_has_more_heap() -> None:
    many, long = (
        NamespaceShape("acme/many", 100_000, 5_000_000),
        NamespaceShape("acme/long", 30_000, 7_000_000),
    )
    asked = question(shapes=(many, long))
    assert asked.largest == many
    assert least_limits(asked.listed).direct_mb * MB_BYTES >= long.answer_bytes
    assert safe_limits(asked).direct_mb * MB_BYTES >= 2 * long.answer_bytes


def test_the_first_direct_memory_limit_serves_readers_in_whole_rounds() -> None:
    # 40 readers holding 4 MB for 8 s each, within 64 s including 3 s of service
    slow = question(network_bytes=0, goal=Goal(back_within_seconds=64))
    setting = start(slow)
    at_once = -(-40 // 7)
    assert setting.broker.direct_mb == -(-at_once * BIG.answer_bytes // MB_BYTES)


def test_the_heap_fits_the_first_estimates_of_all_clients_and_the_largest_list() -> None:
    # A quarter more clients, and a largest namespace of one and a half times the size
    asked = question(clients(1_000, "java-watch"), shapes=(SMALL, BIG))
    safe = safe_limits(asked)
    needed = 1_250 * FIRST_ESTIMATE_BYTES + 1.5 * BIG.charged_bytes
    assert safe.heap_mb == -(-needed // MB_BYTES)
    assert start(asked).broker.heap_mb == safe.heap_mb


@pytest.mark.parametrize(
    ("wait_millis", "accounted_mb", "direct_mb"),
    # 48 MB hold 9.9 lists of 40,000 names; each is matched and answered in 0.87 s on a slow broker.
    [(8_600, 512, 37), (8_700, 512, 8), (8_600, 70, 22)],
)
def test_direct_memory_fits_all_lists_granted_in_a_row_if_this_takes_longer_than_its_timeout(
    wait_millis, accounted_mb, direct_mb
) -> None:
    asked = question(clients(100, "java-poll"), goal=Goal(accounted_mb=accounted_mb))
    limits = Limits(heap_mb=48, direct_mb=8, direct_timeout_millis=wait_millis)
    assert room_for_grants(asked, Setting(limits)).broker.direct_mb == direct_mb


def test_direct_memory_holds_no_more_lists_than_clients_request() -> None:
    limits = Limits(heap_mb=48, direct_mb=1, direct_timeout_millis=100)
    few = question(clients(3, "java-poll"), goal=Goal(accounted_mb=512))
    many = question(clients(100, "java-poll"), goal=Goal(accounted_mb=512))
    rooms = [room_for_grants(each, Setting(limits)).broker.direct_mb for each in (few, many)]
    assert rooms == [12, 37]


def test_direct_memory_for_empty_namespaces_stays_as_it_is() -> None:
    asked, setting = question(shapes=(NamespaceShape("acme/none", 0, 0),)), Setting(Limits())
    assert room_for_grants(asked, setting) == setting


def test_a_search_with_a_proxy_begins_within_the_accounted_memory() -> None:
    asked = question(goal=Goal(accounted_mb=10), today=Setting(Limits(), Limits()))
    assert all(limits.accounted_mb <= 10 for limits in map(start(asked).of, ("proxy", "broker")))


def test_the_number_of_first_estimates_is_bounded_by_concurrent_lookups() -> None:
    asked = question(clients(1_000, "java-watch"), lookups=100)
    assert safe_limits(asked).heap_mb == -(
        -(100 * FIRST_ESTIMATE_BYTES + 1.5 * BIG.charged_bytes) // MB_BYTES
    )


def test_the_accounted_memory_is_split_into_heap_and_direct_in_several_ways() -> None:
    found = splits(question(goal=Goal(accounted_mb=100)))
    assert {(each.broker.heap_mb, each.broker.direct_mb) for each in found} == {
        (25, 75),
        (50, 50),
        (12, 88),
        (75, 25),
    }


def test_splits_stay_within_the_accounted_memory_though_one_namespace_does_not() -> None:
    asked = question(shapes=(BIG, SMALL), goal=Goal(accounted_mb=3, refused_share=0.6))
    assert {each.broker.accounted_mb for each in splits(asked)} == {3}
    assert start(asked).broker.accounted_mb == 3


@pytest.mark.parametrize("proxy", [None, Limits()])
@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
def test_all_timeouts_of_a_request_end_before_its_client_gives_up(proxy, profile) -> None:
    # An answer takes 8 s to read
    today = Setting(Limits(), proxy)
    group = clients(40, rate=500_000)
    slow = question(group, shapes=(SMALL, BIG), profile=profile, today=today)
    setting = start(slow)
    waits = sum(
        limits.heap_timeout_millis + limits.direct_timeout_millis
        for limits in map(setting.of, setting.servers)
    )
    assert 18_000 < waits < 1000 * (30 - BIG.answer_bytes / 500_000)


def test_the_heap_timeout_of_immediate_readers_is_almost_the_clients_timeout() -> None:
    limits = start(question(clients(40))).broker
    assert limits.heap_timeout_millis == pytest.approx(0.9 * 29_000, abs=100)


@pytest.mark.parametrize(("burst", "places"), [(40, 10_000), (10_001, 11_000), (123_456, 124_000)])
def test_the_queue_holds_the_whole_burst_of_requests(burst: int, places: int) -> None:
    assert needed_queue(burst) == places


def test_a_search_begins_with_direct_memory_for_the_largest_answer_however_many_clients() -> None:
    crowd = question(clients(20_000, "java-poll"), goal=Goal(accounted_mb=128))
    begun, least = start(crowd).broker, least_limits(crowd.listed)
    assert begun.direct_mb >= least.direct_mb
    assert begun.accounted_mb <= 128

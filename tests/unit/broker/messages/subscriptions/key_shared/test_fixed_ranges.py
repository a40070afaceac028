"""STICKY: requested ranges, and the refusals of a real broker."""

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.subscriptions.key_shared.fixed_ranges import MOST_RANGES, FixedRanges
from server.connection.request_errors import RequestError


@pytest.mark.parametrize(
    ("ranges", "text"),
    [
        ([], "Ranges for KeyShared policy must not be empty."),
        ([(10, 5)], "Fixed hash range start > end for range: [10,5]"),
        ([(0, 1), (99, 100)], "Range conflict with consumer Consumer{a}"),
        ([(200, 300)], "Range conflict with consumer Consumer{a}"),
        ([(0, 500)], "Range conflict with consumer Consumer{a}"),
        ([(120, 130)], "Range conflict with consumer Consumer{a}"),
        ([(1, 1)] * (MOST_RANGES + 1), "4097 ranges for KeyShared policy are more than 4096"),
    ],
)
def test_a_consumer_with_bad_ranges_is_refused(ranges: list[tuple[int, int]], text: str) -> None:
    fixed: FixedRanges[str] = FixedRanges()
    fixed.add("Consumer{a}", [(100, 200)])
    with pytest.raises(RequestError) as refused:
        fixed.add("Consumer{b}", ranges)
    assert refused.value.server_error == pb.ConsumerAssignError
    assert refused.value.message == text
    assert fixed.ranges("Consumer{b}") == []


def test_hashes_that_nobody_took_have_no_consumer() -> None:
    fixed: FixedRanges[str] = FixedRanges()
    fixed.add("a", [(20, 30), (0, 9)])
    fixed.add("b", [(65_535, 65_536)])
    assert [fixed.select(one) for one in (0, 9, 10, 20, 30, 31)] == ["a", "a", None, "a", "a", None]
    assert fixed.select(65_535) == "b"
    fixed.remove("a")
    assert fixed.select(0) is None


def test_who_leaves_costs_nothing_for_the_ranges_of_others_until_the_next_one_asks() -> None:
    fixed: FixedRanges[int] = FixedRanges()
    for number in range(3):
        fixed.add(number, [(10 * number, 10 * number + 9)])
    held = fixed._ranges
    left = [fixed.remove(1), fixed.remove(2)]
    assert [(one.first, one.last, one.target) for (one,) in left] == [
        (10, 19, None),
        (20, 29, None),
    ]
    assert fixed._ranges is held
    assert [fixed.select(one) for one in (0, 10, 20)] == [0, None, None]
    fixed.add(3, [(15, 25)])
    assert [fixed.select(one) for one in (0, 10, 20, 26)] == [0, None, 3, None]
    assert len(fixed._ranges) == 2


def test_the_hash_of_a_key_may_be_0() -> None:
    assert FixedRanges.hash_of(b"") == 0

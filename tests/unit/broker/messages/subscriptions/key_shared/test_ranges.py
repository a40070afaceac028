"""STICKY: requested ranges, and the refusals of a real broker."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from broker.messages.subscriptions.key_shared import ranges as module
from broker.messages.subscriptions.key_shared.ranges import (
    HASHES,
    MOST_RANGES,
    FixedRanges,
    HalvedRanges,
    MovedHashes,
    murmur,
)
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


def test_unclaimed_hashes_have_no_consumer() -> None:
    fixed: FixedRanges[str] = FixedRanges()
    fixed.add("a", [(20, 30), (0, 9)])
    fixed.add("b", [(65_535, 65_536)])
    assert [fixed.select(one) for one in (0, 9, 10, 20, 30, 31)] == ["a", "a", None, "a", "a", None]
    assert fixed.select(65_535) == "b"
    fixed.remove("a")
    assert fixed.select(0) is None


def test_a_removed_consumers_ranges_are_cleaned_up_by_the_next_addition() -> None:
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


def test_the_hash_of_an_empty_key_is_0() -> None:
    assert FixedRanges.hash_of(b"") == 0


# Recorded of a real 4.2.4 with subscriptionKeySharedUseConsistentHashing=false.
JOINED = {
    "a": {"a": (0, 65536)},
    "b": {"a": (32769, 65536), "b": (0, 32768)},
    "c": {"a": (32769, 65536), "b": (16385, 32768), "c": (0, 16384)},
    "d": {"a": (49153, 65536), "b": (16385, 32768), "c": (0, 16384), "d": (32769, 49152)},
}
LEFT = {
    "a": {"b": (16385, 32768), "c": (0, 16384), "d": (32769, 65536)},
    "c": {"b": (0, 32768), "d": (32769, 65536)},
    "b": {"d": (0, 65536)},
}


def shown(ranges: HalvedRanges[str], names: str) -> dict[str, tuple[int, int]]:
    return {name: one for name in names for one in ranges.ranges(name)}


def test_a_new_consumer_gets_the_lower_half_of_the_largest_range() -> None:
    ranges: HalvedRanges[str] = HalvedRanges()
    for name, expected in JOINED.items():
        ranges.add(name)
        assert shown(ranges, "abcd") == expected
    for name, expected in LEFT.items():
        ranges.remove(name)
        assert shown(ranges, "abcd") == expected
    ranges.remove("d")
    assert ranges.select(1) is None


def test_the_hashes_taken_over_by_a_new_consumer_are_reported() -> None:
    ranges: HalvedRanges[str] = HalvedRanges()
    assert ranges.add("a") == [MovedHashes(0, HASHES, None, "a")]
    assert ranges.add("b") == [MovedHashes(0, 32768, "a", "b")]
    assert ranges.add("c") == [MovedHashes(0, 16384, "b", "c")]
    assert ranges.add("d") == [MovedHashes(32769, 49152, "a", "d")]


def test_a_consumer_is_refused_when_each_range_has_a_single_hash(monkeypatch) -> None:
    monkeypatch.setattr(module, "HASHES", 4)
    ranges: HalvedRanges[int] = HalvedRanges()
    for number in range(4):
        ranges.add(number)
    with pytest.raises(RequestError, match="new consumer, assigned consumers 4"):
        ranges.add(4)
    assert ranges.ranges(4) == []


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(0, HASHES - 1))
def test_each_hash_has_a_single_consumer_after_any_joins_and_leaves(turns, sticky_hash) -> None:
    ranges: HalvedRanges[int] = HalvedRanges()
    present: set[int] = set()
    for number in turns:
        ranges.remove(number) if number in present else ranges.add(number)
        present ^= {number}
        parts = sorted(one for each in present for one in ranges.ranges(each))
        assert Counter(len(ranges.ranges(each)) for each in present) == Counter(
            {1: len(present)} if present else {}
        )
        ends = [0, *(last + 1 for _, last in parts)]
        assert [first for first, _ in parts] == ends[:-1]
        assert not parts or parts[-1][1] == HASHES
        owner = next(
            (n for n in present for a, b in ranges.ranges(n) if a <= sticky_hash <= b), None
        )
        assert ranges.select(sticky_hash) == owner


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0), (b"\0\0\0\0", 0x2362F9DE), (b"test", 0xBA6BD213 & 0x7FFFFFFF)],
)
def test_the_hash_function_is_murmur3_without_its_sign(data: bytes, expected: int) -> None:
    assert murmur(data) == expected

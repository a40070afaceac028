from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.messages.subscriptions.key_shared import halved_ranges
from broker.messages.subscriptions.key_shared.halved_ranges import HASHES, HalvedRanges
from broker.messages.subscriptions.key_shared.moved_hashes import MovedHashes
from server.connection.request_errors import RequestError

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


def test_a_newcomer_gets_the_lower_half_of_the_largest_range() -> None:
    ranges: HalvedRanges[str] = HalvedRanges()
    for name, expected in JOINED.items():
        ranges.add(name)
        assert shown(ranges, "abcd") == expected
    for name, expected in LEFT.items():
        ranges.remove(name)
        assert shown(ranges, "abcd") == expected
    ranges.remove("d")
    assert ranges.select(1) is None


def test_the_hashes_that_a_newcomer_takes_over_are_told() -> None:
    ranges: HalvedRanges[str] = HalvedRanges()
    assert ranges.add("a") == [MovedHashes(0, HASHES, None, "a")]
    assert ranges.add("b") == [MovedHashes(0, 32768, "a", "b")]
    assert ranges.add("c") == [MovedHashes(0, 16384, "b", "c")]
    assert ranges.add("d") == [MovedHashes(32769, 49152, "a", "d")]


def test_nobody_is_taken_where_each_range_is_one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halved_ranges, "HASHES", 4)
    ranges: HalvedRanges[int] = HalvedRanges()
    for number in range(4):
        ranges.add(number)
    with pytest.raises(RequestError, match="new consumer, assigned consumers 4"):
        ranges.add(4)
    assert ranges.ranges(4) == []


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(0, HASHES - 1))
def test_each_hash_has_one_consumer_whoever_comes_and_goes(
    turns: list[int], sticky_hash: int
) -> None:
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

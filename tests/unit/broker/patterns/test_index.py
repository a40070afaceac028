"""A name against many patterns: same keys as separate matching."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.patterns import index as pattern_index
from broker.patterns.errors import InvalidPatternError
from broker.patterns.index import PatternIndex
from broker.patterns.pattern import RegexImplementation, compile_pattern
from tests.support.examples import many
from tests.support.masks import mask_of

FALLBACK = RegexImplementation.RE2J_WITH_JDK_FALLBACK
NAME = b"persistent://t/n/orders-7"


def index_of(*patterns: str) -> PatternIndex[int]:
    """Return an index with the patterns' places as keys."""
    index = PatternIndex[int]()
    for key, pattern in enumerate(patterns):
        index.add(key, pattern, FALLBACK)
    return index


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        (b"persistent://t/n/orders-7", [0, 1, 2, 4]),
        (b"non-persistent://t/n/orders-7", [0, 1, 2, 4]),
        (b"persistent://t/n/orders-7-partition-3", [0, 1, 2, 4]),
        (b"persistent://t/n/orders-7-partition-2147483648", [0, 1]),
        (b"persistent://t/n/other", [0]),
        ("persistent://t/n/orders-é".encode(), [0, 1, 2]),
    ],
)
def test_a_name_matches_the_same_patterns_as_in_a_listing(name: bytes, keys: list[int]) -> None:
    # A pattern for all, a scheme, an open quotation, and look-ahead, which is kept apart
    index = index_of(
        ".*", "persistent://t/n/orders-.*", "t/n/orders-.", "t/n/(?!orders).*", r"\Qt/n/orders-7"
    )
    assert sorted(index.matching(name)) == keys


def test_all_keys_of_an_equal_pattern_are_returned() -> None:
    assert sorted(index_of("t/n/.*", "t/n/.*", "a/b").matching(NAME)) == [0, 1]


@pytest.mark.parametrize("pattern", [".*", "t/n/.*"])
def test_a_discarded_key_is_no_longer_returned(pattern: str) -> None:
    index = index_of(pattern, pattern)
    assert len(index.matching(NAME)) == 2
    index.discard(0)
    assert index.matching(NAME) == [1]
    index.discard(1)
    index.discard(1)
    assert (index.matching(NAME), len(index)) == ([], 0)


def test_a_discarded_backtracking_key_is_no_longer_returned() -> None:
    index = index_of("t/n/(?!x).*", "t/n/(?!x).*")
    index.discard(0)
    assert index.backtracking == [1]


def test_adding_a_key_again_replaces_its_pattern() -> None:
    index = index_of("t/n/.*")
    index.add(0, "a/b", FALLBACK)
    assert index.matching(NAME) == []
    assert index.matching(b"persistent://a/b") == [0]
    assert len(index) == 1


def test_an_invalid_pattern_does_not_change_the_index() -> None:
    index = index_of("t/n/.*")
    with pytest.raises(InvalidPatternError):
        index.add(0, "(((", FALLBACK)
    assert index.matching(NAME) == [0]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the number of patterns of each compiled set."""
    found: list[int] = []
    make = pattern_index._set_of
    monkeypatch.setattr(
        pattern_index, "_set_of", lambda all_: found.append(len(all_)) or make(all_)
    )
    return found


def test_adding_a_pattern_compiles_a_single_set_and_discarding_compiles_none(
    compiled: list[int],
) -> None:
    index = index_of(*(f"t/n/orders-{number}" for number in range(1_000)))
    index.matching(NAME)
    first, compiled[:] = list(compiled), []
    index.add(2_000, "t/n/.*", FALLBACK)
    index.discard(500)
    assert sorted(index.matching(NAME)) == [7, 2_000]
    assert sum(first) == 1_000
    assert compiled == [1_000 % pattern_index.SET_PATTERNS + 1]


def test_each_large_pattern_has_a_set_of_its_own() -> None:
    # 64 patterns together would compile for 60 ms at each arrival.
    index = index_of(*(f"t/n/.{{{900 + number}}}" for number in range(10)), "t/n/.*", "t/n/x")
    assert [len(one.slots) for one in index._sets] == [1] * 9 + [3]
    index.discard(9)
    index.add(9, "t/n/.{800}", FALLBACK)
    assert [len(one.slots) for one in index._sets] == [1] * 9 + [3]


def test_a_set_of_a_single_large_pattern_matches_a_long_name() -> None:
    # A set would exhaust the set's memory in the middle of a long name.
    index = index_of("t/n/.{900}")
    assert len(list(index.compiling())) == 1
    engine = index._sets[0]._engine
    assert engine is not None
    assert engine._one_by_one is not None
    assert index.matching(b"persistent://t/n/" + b"x" * 900) == [0]


def test_each_step_compiles_a_single_set_of_patterns(compiled: list[int]) -> None:
    index = index_of(*(f"t/n/orders-{number}" for number in range(200)))
    before = [list(compiled) for _ in index.compiling()]
    assert list(map(len, before)) == [1, 2, 3, 4]
    assert list(index.compiling()) == []
    assert index.matching(NAME) == [7]
    assert len(compiled) == 4


def test_slots_of_discarded_patterns_are_reused() -> None:
    index = PatternIndex[int]()
    for number in range(1_000):
        index.add(number, f"t/n/{number}", FALLBACK)
        index.discard(number - 10)
    assert len(index._sets) == 1


def test_a_set_that_runs_out_of_memory_is_matched_pattern_by_pattern(monkeypatch) -> None:
    # Capacity for the patterns, and almost none for the matcher's cache
    monkeypatch.setattr(pattern_index, "SET_BYTES", 15_000)
    index = index_of(*(f"t/n/.*{letter}.{{12}}.*" for letter in "abcdefghijkl"))
    name = b"persistent://t/n/" + b"0acegik1234567890" * 6
    keys = index.matching(name)
    assert sorted(keys) == [0, 2, 4, 6, 8, 10]
    engine = index._sets[0]._engine
    assert engine is not None
    assert engine._one_by_one is not None


def test_a_set_that_is_too_large_to_compile_is_matched_pattern_by_pattern(monkeypatch) -> None:
    monkeypatch.setattr(pattern_index, "SET_BYTES", 2_000)
    assert index_of("t/n/.*", "(a{100}){9}|t/n/o.*", "x").matching(NAME) == [0, 1]


def test_backtracking_patterns_are_listed_separately_and_not_evaluated() -> None:
    index = index_of("(?!zz)t/n/(?:(?:x|x)*)*q", "t/n/(?=x).*", "t/n/.*")
    assert index.matching(b"persistent://t/n/" + b"x" * 60) == [2]
    assert index.backtracking == [0, 1]


PIECES = st.sampled_from(["a", "b", ".", ".*", "[^a]", "(a|b)", "a+", "\\.", "-partition-1", "é"])
PATTERNS = st.lists(st.lists(PIECES, max_size=4).map("".join), max_size=8)
NAMES = st.lists(st.sampled_from(["a", "b", ".", "-partition-1", "é"]), max_size=4).map("".join)


@settings(max_examples=many(100), deadline=None)
@given(PATTERNS, NAMES)
def test_matching_all_patterns_together_equals_matching_each_separately(
    patterns: list[str], name: str
) -> None:
    index = index_of(*patterns)
    full = f"persistent://{name}".encode()
    alone = [
        key
        for key, pattern in enumerate(patterns)
        if mask_of(compile_pattern(pattern, FALLBACK), [full])[0]
    ]
    assert sorted(index.matching(full)) == alone

"""A filter's result equals name by name matching, wherever blocks end."""

import asyncio
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.patterns import filter as pattern_filter
from broker.patterns.cache import ListingCache
from broker.patterns.filter import PatternFilter, PatternRules
from broker.patterns.path_columns import PathColumns
from broker.patterns.pattern import LinearTime, RegexImplementation
from broker.patterns.plain_paths import PlainPaths
from broker.stores.snapshots.namespace_properties import names_at_rows
from broker.topic_lists import tree as topic_tree
from broker.topic_lists.sequence import Selection, TopicListing, TopicSequence
from proto.names import without_partition
from proto.topic_hash import java_order
from tests.support.stepwise import finished

# Both sides of each border between UTF-8's order and Java's, and names that sort around
# "-partition-".
LETTERS = st.text(
    st.sampled_from("ab-!z~\u00e9\ud7ff\ue000\uffff\U00010000\U0010ffff"), min_size=1, max_size=4
)
PARTITIONS = st.sampled_from(["", "", "", "-partition-0", "-partition-12", "-partition-x"])
LOCAL_NAMES = st.builds(str.__add__, LETTERS, PARTITIONS)
NAME_LISTS = st.lists(LOCAL_NAMES, max_size=30)
PIECES = st.one_of(
    LETTERS.map(regex.escape),
    st.sampled_from([".", ".*", "[a-z]", "a*", "(a|b)", "(?:!|~x)?", "b+", "[^a]", "a|b"]),
)
PATTERNS = st.lists(PIECES, max_size=4).map("".join)
FLAGS = st.sampled_from(["", "", "(?i)"])
MANY = settings(max_examples=60, deadline=None)


@pytest.fixture(autouse=True)
def small_blocks() -> Iterator[None]:
    with patch.multiple(topic_tree, BLOCK_BYTES=100, BRANCH_CHILDREN=3):
        yield


def sequence_of(domain: str, local_names: list[str]) -> TopicSequence:
    return TopicSequence.from_names(f"{domain}://t/n/{one}".encode() for one in local_names)


def expected(listing: TopicListing, pattern: str) -> list[str]:
    """Return the matches, name by name, of another engine."""
    whole = regex.compile(f"(?:{pattern})")
    return [
        name
        for name in listing.names()
        if whole.fullmatch(without_partition(name).split("://", 1)[1])
    ]


@pytest.mark.parametrize("paths_of", [PathColumns, PlainPaths])
@MANY
@given(NAME_LISTS, NAME_LISTS, PATTERNS, FLAGS)
def test_a_filter_keeps_exactly_the_matching_names(
    paths_of, persistent, others, pattern, flags
) -> None:
    listing = TopicListing(
        sequence_of("non-persistent", others), sequence_of("persistent", persistent)
    )
    rules = PatternRules(
        enabled=True,
        max_length=1_000,
        implementation=RegexImplementation.RE2J,
        share=True,
        timeout_seconds=1.0,
    )
    whole = f"{flags}t/n/(?:{pattern})"
    with patch.multiple(pattern_filter, FIRST_STEP_NAMES=3, PathsOf=paths_of):
        kept = asyncio.run(PatternFilter(rules, ListingCache(100_000)).filter(listing, whole))
    assert list(kept.names()) == expected(listing, whole)
    assert kept.hash == TopicListing(TopicSequence.from_names(_encoded(kept))).hash


ATOMS = st.sampled_from(
    ["a", "b", "-", "/", ".", "\\.", "[ab]", "[^a]", "\\w", "(a|b.)", "(?:a|)", "(|-)", "\\d"]
)
REPEATED = st.sampled_from(["", "", "", "*", "+", "?", "*?", "{2}", "{0,2}"])
RESTS = st.lists(st.builds(str.__add__, ATOMS, REPEATED), max_size=4).map("".join)
BEGINNINGS = st.sampled_from(["", "t/n/", "t/n/a", "t/n/\\.", "t", "-"])
ENDS = st.sampled_from(["", "", ".*", "\\.*", "$", ".*$", "a.*"])
PATHS = st.text(st.sampled_from("ab.-/1\n\u00e9\U0001f600"), max_size=8)


@MANY
@given(BEGINNINGS, RESTS, ENDS, st.lists(PATHS, min_size=1, max_size=20), st.booleans())
def test_a_pattern_matched_in_parts_equals_the_whole_pattern(
    beginning: str, rest: str, end: str, locals_: list[str], line_breaks: bool
) -> None:
    paths = [f"t/n/{one}" if line_breaks else f"t/n/{one}".replace("\n", "b") for one in locals_]
    paths += [path.removeprefix("t/n/") for path in paths]
    text = f"{beginning}.*{rest}{end}"
    pattern, column = LinearTime(text), pa.array(paths, pa.string())
    assert pattern._search is not None
    apart = pattern.matching(column.slice(1))
    whole = pc.match_substring_regex(column, pattern.whole).to_pylist()
    assert list(map(bool, apart)) == whole[1:]
    assert pattern.matching([path.encode() for path in paths[1:]]) == apart


@MANY
@given(NAME_LISTS, PATTERNS, FLAGS)
def test_every_match_is_within_the_range_of_its_pattern(local_names, pattern, flags) -> None:
    compiled = LinearTime(f"{flags}t/n/(?:{pattern})")
    listing = TopicListing(sequence_of("persistent", local_names))
    for name in expected(listing, compiled.text):
        path = name.removeprefix("persistent://").encode()
        assert compiled.low <= java_order(path) <= compiled.high


@MANY
@given(st.lists(LOCAL_NAMES, min_size=1, max_size=60, unique=True), st.data())
def test_rows_select_the_names_in_their_order(local_names: list[str], data: st.DataObject) -> None:
    sequence = sequence_of("persistent", local_names)
    names = list(sequence.names())
    rows = sorted(data.draw(st.sets(st.integers(0, len(names) - 1))))
    chosen = finished(names_at_rows(sequence, _array(rows)))
    assert list(chosen.names()) == [names[row] for row in rows]
    assert chosen.totals == TopicSequence.from_sorted([names[row] for row in rows]).totals
    assert [sequence.row_of(name) for name in names] == list(range(len(names)))
    assert [sequence.name_at(row) for row in rows] == [names[row] for row in rows]
    assert sequence.row_of(b"persistent://t/n/not there") is None


@MANY
@given(st.lists(LOCAL_NAMES, min_size=1, max_size=60), LOCAL_NAMES, LOCAL_NAMES)
def test_blocks_of_a_range_contain_every_name_of_the_range(local_names, one, other) -> None:
    sequence = sequence_of("persistent", local_names)
    low, high = sorted(java_order(f"persistent://t/n/{end}".encode()) for end in (one, other))
    found = [name for block in sequence.blocks(low, high) for name in block.names()]
    within = [name for name in sequence.names() if low <= java_order(name) <= high]
    assert [name for name in found if low <= java_order(name) <= high] == within


@MANY
@given(st.lists(LOCAL_NAMES, min_size=1, max_size=60, unique=True), st.data())
def test_a_selection_counts_its_added_bytes(local_names: list[str], data: st.DataObject) -> None:
    sequence = sequence_of("persistent", local_names)
    rows = sorted(data.draw(st.sets(st.integers(0, len(sequence) - 1))))
    selection = Selection(sequence)
    for block, chosen in sequence.blocks_of_rows(rows):
        selection.keep_rows(block, chosen)
    kept = selection.sequence()
    shared = set(sequence.blocks())
    own = sum(len(block.wire) for block in kept.blocks() if block not in shared)
    assert selection.added_bytes >= own
    assert (selection.added_bytes == 0) == (kept is sequence or not rows)


def _encoded(listing: TopicListing) -> list[bytes]:
    return [name.encode() for name in listing.names()]


def _array(rows: list[int]) -> npt.NDArray[np.int64]:
    return np.array(rows, np.int64)

"""Properties on the way into a store."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from broker.stores.changes import TopicChanges
from broker.stores.conditions import is_large
from broker.stores.property_rows import (
    PROPERTIES_TYPE,
    PropertyRows,
    pair_of_text,
    pair_text,
    pair_texts,
)
from server.tasks.freed_memory import GlibcHeap

ROOT = Path(__file__).parents[4]


def test_making_the_first_rows_imports_no_module() -> None:
    # In a separate process, because this process may have imported the module already
    made = "PropertyRows.same_for_all([b'x'], {'a': 'b'}); PropertyRows.from_mappings({b'x': {}})"
    program = (
        "import sys; from broker.stores.property_rows import PropertyRows; known = set(sys.modules)"
        f"; {made}; print(sorted(set(sys.modules) - known))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")


def rows(*properties: object) -> PropertyRows:
    names = [b"topic-%d" % number for number in range(len(properties))]
    return PropertyRows(names, pa.array(properties, PROPERTIES_TYPE))


def texts(made: PropertyRows) -> tuple[list[int], list[bytes]]:
    counts, pairs = pair_texts(made.column)
    return counts.tolist(), pairs.to_pylist()


def test_each_row_has_its_own_properties() -> None:
    made = rows([("a", "1"), ("b", "2")], [], None)
    assert [made.of(row) for row in range(3)] == [{"a": "1", "b": "2"}, {}, {}]
    assert texts(made) == ([2, 0, 0], [b"1:a:1", b"1:b:2"])


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([("a", "1"), ("b", "2"), ("a", "3")], {"a": "3", "b": "2"}),
        ([("a", "1"), ("b", None)], {"a": "1"}),
        ([("a", "1"), ("a", None)], {}),
    ],
)
def test_the_last_value_of_a_duplicate_key_counts_and_null_removes_the_key(given, kept) -> None:
    made = rows([("x", "0")], given, [("a", "9")])
    assert made.of(1) == kept
    counts, pairs = texts(made)
    assert counts == [1, len(kept), 1]
    assert dict(map(pair_of_text, pairs[1:-1])) == kept


def test_a_slice_of_a_column_is_read_with_its_own_rows() -> None:
    whole = rows([("a", "1")], None, [("b", "2")], [("c", "3"), ("d", "4")], None)
    part = PropertyRows([b"x", b"y", b"z"], whole.column.slice(1, 3))
    assert texts(part) == ([0, 1, 2], [b"1:b:2", b"1:c:3", b"1:d:4"])
    assert part.of(1) == {"b": "2"}


def test_large_strings_are_read_like_strings() -> None:
    kind = pa.map_(pa.large_string(), pa.large_string())
    assert texts(PropertyRows([b"x"], pa.array([[("a", "1")]], kind))) == ([1], [b"1:a:1"])


def test_triples_have_each_name_and_each_key_once() -> None:
    column = pa.array([[("a", "1")], [("b", "2"), ("b", "3")], [("c", None)]], PROPERTIES_TYPE)
    made = PropertyRows([b"x", b"y", b"x"], column)
    assert list(made.triples()) == [(b"y", "b", "3")]


def test_rows_are_filtered_with_their_names() -> None:
    made = rows([("a", "1")], [("b", "2")], [("c", "3")]).filter([True, False, True])
    assert made.names == [b"topic-0", b"topic-2"]
    assert list(made.triples()) == [(b"topic-0", "a", "1"), (b"topic-2", "c", "3")]


def test_many_topics_may_have_the_same_properties() -> None:
    made = PropertyRows.same_for_all([b"x", b"y"], {"a": "1", "b": "2"})
    assert [made.of(0), made.of(1)] == [{"a": "1", "b": "2"}] * 2


@pytest.mark.parametrize(
    "pair", [("", ""), ("a", ""), ("", "a"), ("1:a", ":"), ("é", "\U0001f600"), ("a:1", "b:2")]
)
def test_the_text_of_a_pair_is_parsed_back_to_the_pair(pair: tuple[str, str]) -> None:
    text = pair_text(*pair)
    assert text is not None
    assert pair_of_text(text) == pair


def test_different_pairs_have_different_texts() -> None:
    parts = ["", "1", ":", "a", "1:", ":1", "a:", "1:a", "1:a:", "11:a"]
    pairs = [(key, value) for key in parts for value in parts]
    assert len({pair_text(*pair) for pair in pairs}) == len(pairs)


def test_a_lone_surrogate_has_no_pair_text() -> None:
    assert pair_text("\ud800", "v") is None
    assert pair_text("k", "\udfff") is None


def test_converting_many_pairs_does_not_fragment_the_heap() -> None:
    rows = 100_000
    pairs = pa.array(
        [[("team", f"team-{row}"), ("row", str(row))] for row in range(rows)], PROPERTIES_TYPE
    )
    info = GlibcHeap()._info
    before = info().smblks
    counts, _ = pair_texts(pairs)
    assert counts.tolist() == [2] * rows
    assert info().smblks - before < rows // 10


def test_sliced_rows_count_only_their_own_pairs() -> None:
    column = pa.array([[("k", "v")] * 5_000, [], [("k", "v"), ("l", "w")], None], PROPERTIES_TYPE)
    assert PropertyRows([b"b", b"c", b"d"], column.slice(1)).pairs == 2
    assert not is_large(TopicChanges(properties=PropertyRows([b"c"], column.slice(2, 1))))
    assert PropertyRows([], column.slice(4)).pairs == 0

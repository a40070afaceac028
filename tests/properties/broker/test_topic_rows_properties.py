"""Columns about topic names equal REST's answers, name by name."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import RefusedError
from broker.imports.rows import TopicRows, valid_rows
from broker.stores.property_rows import PROPERTIES_TYPE
from broker.topics.properties import MAX_PROPERTIES, check_properties
from broker.topics.rules import MAX_PARTITIONS, check_name
from proto.invalid_rows import InvalidRows
from proto.names import InvalidNameError, TopicName, is_blank

CHARACTERS = st.sampled_from([*"ab-_=:.%@ /\\\t\n\x00\x1f\x7f\x85\u00a0\u2028\u3000é🚀Ⅷ٣"])
PARTS = st.just("t") | st.just("é") | st.text(CHARACTERS, max_size=6)
NUMBERS = st.sampled_from([0, MAX_PARTITIONS - 1, MAX_PARTITIONS, 2**31 - 1, 2**31, 10**20])
NUMBERED = re.compile(r"(.*)-partition-[+-]?[0-9]+", re.DOTALL)
SUFFIXES = st.just("") | NUMBERS.map("-partition-{}".format) | st.just("-partition-0100000")
LOCALS = st.one_of(
    st.tuples(PARTS, SUFFIXES).map("".join),
    st.text(st.sampled_from(" \u00a0\u2028\u3000\x85\t"), max_size=2),
)
STARTS = st.sampled_from(
    ["topic://t/a/", "t/a/", "persistent://t/", "persistent://t/a//", "persistent://t/ü/"]
) | st.just("persistent://t/a/")
NAMES = st.tuples(STARTS | st.just("non-persistent://t-1/a_b.c:d=e/"), LOCALS).map("".join)
MAPS = st.dictionaries(
    st.sampled_from(["k", "l", "k\0", "k" * 500, "k" * 512, "k" * 2_560, "ü" * 256]),
    st.sampled_from(["", "v", "\0", *("v" * size for size in range(2_030, 2_050)), "ü" * 1_020]),
    max_size=3,
)


def checked(table: pa.Table) -> tuple[pa.Table, InvalidRows]:
    invalid = InvalidRows(Path("x"))
    rows = TopicRows(table, np.arange(1, len(table) + 1), "row", lambda _: False)
    return valid_rows(rows, invalid), invalid


def allowed(name: str) -> bool:
    try:
        topic = TopicName.parse(name)
        check_name(topic)
    except (InvalidNameError, RefusedError):
        return False
    numbered = NUMBERED.fullmatch(topic.local_name)
    if numbered is not None and is_blank(numbered[1]):
        return False
    return str(topic) == name and topic.partition_index < MAX_PARTITIONS


@given(st.lists(NAMES, min_size=5, max_size=15))
def test_columns_accept_the_same_names_as_rest(names: list[str]) -> None:
    table, invalid = checked(pa.table({"topic": pa.array(names, pa.string())}))
    assert table["topic"].to_pylist() == [name for name in names if allowed(name)]
    assert (invalid.rows, invalid.count) == (len(names), len(names) - len(table))
    assert (f"{invalid}".count("\n  row ")) == min(20, invalid.count)


def test_columns_accept_the_same_characters_in_names_as_rest() -> None:
    characters = [chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000]
    names = [f"persistent://t/a/{character}" for character in characters]
    table, _ = checked(pa.table({"topic": names}))
    assert table["topic"].to_pylist() == [name for name in names if allowed(name)]


def may_be(name: str, properties: dict[str, str]) -> bool:
    try:
        check_properties(name, properties)
    except RefusedError:
        return False
    return True


@given(st.lists(st.none() | MAPS, min_size=1, max_size=20), st.integers(0, 3))
def test_columns_accept_the_same_properties_as_rest(
    rows: list[dict[str, str] | None], skipped: int
) -> None:
    pairs = [None if row is None else list(row.items()) for row in rows]
    pairs.append([(f"k{n}", "v") for n in range(MAX_PROPERTIES + 1)])
    names = [f"persistent://t/a/{n}" for n in range(len(pairs))]
    table = pa.table({"topic": names, "properties": pa.array(pairs, PROPERTIES_TYPE)})
    valid, _ = checked(table.slice(skipped))
    expected = [
        name for name, row in zip(names, [*rows, None], strict=True) if may_be(name, row or {})
    ]
    assert valid["topic"].to_pylist() == [name for name in expected[:-1] if name in names[skipped:]]

"""The cost of property columns and of their changes."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from broker.stores.property_rows import PROPERTIES_TYPE, pair_text
from broker.stores.snapshots import property_columns
from broker.stores.snapshots.property_columns import PropertyColumns, Segment, wanted_pair

NONE = np.zeros(0, np.int64)
Properties = list[tuple[str, str]]


def column(rows: Sequence[Properties]) -> pa.MapArray:
    return pa.array(rows, PROPERTIES_TYPE)


def columns(rows: Sequence[Properties]) -> PropertyColumns:
    sources = np.arange(len(rows))
    return PropertyColumns().edited(NONE, np.zeros(len(rows), np.int64), sources, column(rows))


def found(made: PropertyColumns, **properties: str) -> list[int]:
    pairs = [wanted_pair(pair_text(*one)) for one in properties.items()]
    return [start + row for start, one in made.segments for row in one.rows_with(pairs).tolist()]


def read(made: PropertyColumns) -> list[dict[str, str]]:
    return [made.of(row) for row in range(len(made))]


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(property_columns, "SEGMENT_ROWS", 4)


ROWS = [[("team", f"t{row % 3}"), ("row", str(row))] for row in range(20)]


@pytest.mark.usefixtures("small_segments")
def test_rows_are_found_by_all_wanted_properties_in_all_segments() -> None:
    made = columns(ROWS)
    assert len(made.segments) == 5
    assert found(made, team="t1") == [1, 4, 7, 10, 13, 16, 19]
    assert found(made, team="t1", row="16") == [16]
    assert found(made, row="16", team="t1") == [16]
    assert found(made, team="t1", row="17") == []
    assert found(made, team="17") == []


def test_a_row_does_not_match_by_the_property_of_its_neighbour() -> None:
    made = columns([[("a", "1")], [("b", "2")], [("a", "1"), ("b", "2")], [("a", "1")]])
    assert found(made, a="1", b="2") == [2]
    assert found(made, b="2", a="1") == [2]


@pytest.mark.usefixtures("small_segments")
def test_a_change_shares_all_segments_outside_its_rows() -> None:
    made = columns(ROWS)
    edited = made.edited(np.array([9]), np.array([9]), np.array([0]), column([[("team", "x")]]))
    before, after = made.segments, edited.segments
    assert [a is b for (_, a), (_, b) in zip(before, after, strict=True)] == [
        True,
        True,
        False,
        True,
        True,
    ]
    assert (made.of(9), edited.of(9)) == ({"team": "t0", "row": "9"}, {"team": "x"})
    assert edited.of(8) == made.of(8)
    assert edited.of(10) == made.of(10)


@pytest.mark.usefixtures("small_segments")
def test_a_grown_segment_is_split_and_an_empty_segment_is_removed() -> None:
    made = columns(ROWS)
    grown = made.edited(NONE, np.full(9, 4), np.arange(9), column(ROWS[:9]))
    shrunk = made.edited(np.arange(4, 8), NONE, NONE, column([]))
    assert read(grown) == [dict(row) for row in (*ROWS[:4], *ROWS[:9], *ROWS[4:])]
    assert max(len(segment) for _, segment in grown.segments) <= 8
    assert read(shrunk) == [dict(row) for row in (*ROWS[:4], *ROWS[8:])]
    assert len(shrunk.segments) == 4


def test_new_rows_may_have_no_properties() -> None:
    made = columns(ROWS).edited(NONE, np.array([0, 20]), np.array([-1, -1]), column([]))
    assert read(made) == [{}, *map(dict, ROWS), {}]


def test_removing_the_last_property_frees_all_memory() -> None:
    made = columns([[("a", "1")], []])
    bare = made.edited(np.array([0]), NONE, NONE, column([]))
    assert len(bare) == 0
    assert bare.nbytes == 0


def test_values_without_rows_are_released() -> None:
    made = columns(ROWS)
    for number in range(1_000):
        new = column([[("team", f"unique-{number:06}")]])
        made = made.edited(np.array([3]), np.array([3]), np.array([0]), new)
    assert made.nbytes < columns(ROWS).nbytes + 100


@pytest.mark.parametrize(
    ("values", "bytes_a_topic"), [(50, 7), (3_000, 16), (100_000, 30)], ids=["few", "some", "own"]
)
def test_two_properties_take_a_few_bytes_per_topic(values: int, bytes_a_topic: int) -> None:
    # Each topic's distinct value is included, too
    size = 20_000
    rows = [[("team", f"team-{row % values}"), ("env", "prod")] for row in range(size)]
    assert columns(rows).nbytes / size < bytes_a_topic


def test_keys_of_a_single_topic_take_few_bytes_per_topic() -> None:
    rows = [[(f"key-{row}", "v")] for row in range(20_000)]
    assert columns(rows).nbytes / len(rows) < 30


def test_a_segment_of_many_distinct_properties_finds_its_rows() -> None:
    # More than 256 and more than 65,536 numbers
    for size in (300, 70_000):
        rows = [[("k", str(row))] for row in range(size)]
        segment = Segment.from_column(column(rows))
        assert segment.of(size - 1) == {"k": str(size - 1)}
        assert segment.rows_with([wanted_pair(pair_text("k", str(size - 1)))]).tolist() == [
            size - 1
        ]


def test_columns_hold_no_memory_of_the_arrow_pool() -> None:
    columns(ROWS)
    before = pa.total_allocated_bytes()
    made = columns(ROWS)
    assert len(made) == len(ROWS)
    assert pa.total_allocated_bytes() == before

"""Which rows of a file are valid topics, and the refusal of each invalid row."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker.imports.importer import ImportFailedError, import_topics
from broker.imports.rows import highest_partitions
from broker.stores.memory import MemoryStore
from broker.stores.property_rows import PROPERTIES_TYPE
from broker.topics.properties import MAX_PROPERTIES, MAX_PROPERTY_BYTES
from broker.topics.rules import MAX_PARTITIONS
from proto.names import MAX_NAME_BYTES, NamespaceName

START = "persistent://tenant/a/"
GOOD = f"{START}good"
ROOM = MAX_PROPERTY_BYTES - len(f"{GOOD}0")
"""Bytes left for a property's key and value next to the name."""


def as_text(values: Sequence[bytes | None]) -> pa.StringArray:
    """Return a column declared as text, with arbitrary bytes."""
    return pa.array(values, pa.binary()).view(pa.string())


def as_text_map(rows: Sequence[object]) -> pa.MapArray:
    """The same of properties."""
    column = pa.array(rows, pa.map_(pa.binary(), pa.binary()))
    texts = [part.view(pa.string()) for part in (column.keys, column.items)]
    return pa.MapArray.from_arrays(column.offsets, *texts)


async def imported(path: Path, table: pa.Table, *, skip_invalid: bool = False) -> MemoryStore:
    pq.write_table(table, path / "t.parquet")
    store = MemoryStore()
    await import_topics(store, path / "t.parquet", skip_invalid=skip_invalid)
    return store


async def refusal(path: Path, table: pa.Table) -> list[str]:
    """The lines for the invalid rows."""
    with pytest.raises(ImportFailedError) as caught:
        await imported(path, table)
    return str(caught.value).splitlines()[1:-1]


def of_names(*topics: str) -> pa.Table:
    return pa.table({"namespace": ["tenant/a"] * len(topics), "topic": topics})


def described(properties: pa.MapArray) -> pa.Table:
    """A topic a row of properties."""
    topics = of_names(*(f"{GOOD}{n}" for n in range(len(properties))))
    return topics.append_column("properties", properties)


# -- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("local", "fault"),
    [
        ("x" * MAX_NAME_BYTES, "bytes, a name may have 2,048"),
        ("ü" * (MAX_NAME_BYTES // 2), "bytes, a name may have 2,048"),
        ("a\nb", "has a control character, such as an end of line"),
        ("a\x7f", "has a control character, such as an end of line"),
        ("\u3000", "is not a full topic name"),
        ("\u2003 ", "is not a full topic name"),
        ("a/b", "is not a full topic name"),
        ("-partition-0", "is a partition of a topic without a name"),
        ("-partition-007", "is a partition of a topic without a name"),
        ("\u3000 -partition-99999999999", "is a partition of a topic without a name"),
    ],
)
async def test_a_topic_name_that_rest_refuses_is_not_imported(
    tmp_path, local: str, fault: str
) -> None:
    (line,) = await refusal(tmp_path, of_names(GOOD, f"{START}{local}"))
    assert line.startswith("  row 2: ")
    assert fault in line
    assert len(line) < 250


async def test_the_longest_allowed_topic_name_is_imported(tmp_path: Path) -> None:
    longest = START + "x" * (MAX_NAME_BYTES - len(START))
    store = await imported(tmp_path, of_names(longest))
    assert (await store.snapshot(NamespaceName.parse("tenant/a"))).exists(longest)


@pytest.mark.parametrize("namespaces", [1, 40])
async def test_a_topic_outside_its_namespace_column_is_refused_with_its_row(
    tmp_path: Path, namespaces: int
) -> None:
    spaces = [f"tenant/n{n}" for n in range(namespaces)]
    topics = [f"non-persistent://{space}/t" for space in spaces] + ["persistent://tenant/n/t"]
    rows = pa.table({"namespace": [*spaces, spaces[0]], "topic": topics})
    (line,) = await refusal(tmp_path, rows)
    assert line.startswith(f"  row {namespaces + 1}: 'persistent://tenant/n/t' is not a full ")
    assert "in namespace 'tenant/n0'" in line


# -- encodings --------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["namespace", "topic"])
async def test_names_that_are_not_utf8_are_invalid_rows(tmp_path: Path, column: str) -> None:
    good = {"namespace": [b"tenant/a"] * 3, "topic": [GOOD.encode()] * 3}
    good[column] = [good[column][0], b"caf\xe9", b"\xff"]
    rows = pa.table({name: as_text(values) for name, values in good.items()})
    lines = await refusal(tmp_path, rows)
    assert lines == ["  row 2: b'caf\\xe9' is not UTF-8", "  row 3: b'\\xff' is not UTF-8"]


async def test_rows_that_are_not_utf8_can_be_skipped(tmp_path: Path) -> None:
    topics = [f"{GOOD}{n}".encode() for n in range(3)]
    topics[1] += b"\xff"
    rows = pa.table({"namespace": ["tenant/a"] * 3, "topic": as_text(topics)})
    store = await imported(tmp_path, rows, skip_invalid=True)
    snapshot = await store.snapshot(NamespaceName.parse("tenant/a"))
    assert list(snapshot.persistent.names()) == [topics[0], topics[2]]


@pytest.mark.parametrize("pair", [(b"\xff", b"v"), (b"k", b"\xff")])
async def test_properties_that_are_not_utf8_are_invalid_rows(tmp_path, pair) -> None:
    lines = await refusal(tmp_path, described(as_text_map([[(b"k", b"v")], [], [pair], []])))
    assert lines == ["  row 3: b'\\xff' is not UTF-8"]


# -- properties -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "fault"),
    [
        ([("k" * ROOM, "v")], "have 2,561 bytes together, and may have 2,560"),
        ([("k", "v" * ROOM)], "the property 'k' is too large"),
        ([("k", "ü" * (ROOM // 2 + 1))], "the property 'k' is too large"),
        ([("a\0b", "v")], "has a NUL character"),
        ([("k", "\0")], "has a NUL character"),
        ([(f"k{n}", "") for n in range(MAX_PROPERTIES + 1)], "65 properties: a topic may have 64"),
    ],
)
async def test_properties_that_rest_refuses_are_not_imported(tmp_path, pairs, fault) -> None:
    column = pa.array([[("k", "v")], [], None, pairs], PROPERTIES_TYPE)
    (line,) = await refusal(tmp_path, described(column))
    assert line.startswith(f"  row 4: '{GOOD}3': ")
    assert fault in line


async def test_the_largest_allowed_properties_are_imported(tmp_path: Path) -> None:
    largest = {f"{n:02}": "v" * (ROOM - 2) for n in range(MAX_PROPERTIES)}
    column = pa.array([[], list(largest.items())], PROPERTIES_TYPE)
    store = await imported(tmp_path, described(column))
    assert await store.properties(NamespaceName.parse("tenant/a"), f"{GOOD}1") == largest


# -- partitions -------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [MAX_PARTITIONS, 2_147_483_646, 2**31 - 1])
async def test_a_partition_beyond_the_maximum_count_is_refused(tmp_path, index: int) -> None:
    (line,) = await refusal(tmp_path, of_names(f"{START}x-partition-{index}", GOOD))
    assert line == (
        f"  row 1: '{START}x-partition-{index}' is partition {index}; a topic has at most 100,000"
    )


async def test_the_last_partition_and_names_without_a_partition_number_are_imported(
    tmp_path,
) -> None:
    rows = of_names(
        f"{START}x-partition-99999", f"{START}y-partition-{2**31}", f"{START}z-012345678"
    )
    store = await imported(tmp_path, rows)
    snapshot = await store.snapshot(NamespaceName.parse("tenant/a"))
    assert dict(snapshot.partitioned) == {f"{START}x": MAX_PARTITIONS}


@pytest.mark.parametrize("digits", ["2147483648", "9" * 18, "9" * 5_000])
def test_a_partition_number_out_of_range_does_not_hide_valid_partitions(digits: str) -> None:
    rows = pa.chunked_array([[f"{START}a-partition-{index}" for index in (0, digits, 1)]])
    assert list(highest_partitions(rows, np.array([7, 7, 7]))) == [(f"{START}a", 7, 1)]


async def test_faults_of_different_kinds_are_reported_in_row_order(tmp_path: Path) -> None:
    topics = [b"broken", b"\xff", GOOD.encode(), f"{START}p-partition-100000".encode(), None, b"x"]
    rows = pa.table({"namespace": ["tenant/a"] * len(topics), "topic": as_text(topics)})
    lines = await refusal(tmp_path, rows)
    numbers = [int(line.split(":")[0].removeprefix("  row ")) for line in lines]
    assert numbers == list(np.flatnonzero([1, 1, 0, 1, 1, 1]) + 1)

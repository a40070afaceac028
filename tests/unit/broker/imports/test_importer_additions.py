import pyarrow as pa
import pytest

from broker.imports.importer import additions
from broker.imports.staging import Lot
from broker.stores.property_rows import PROPERTIES_TYPE
from proto.names import InvalidNameError, NamespaceName

START = "persistent://t"


def lot(*topics: str, properties: list[list[tuple[str, str]] | None] | None = None) -> Lot:
    """Return equally many topics of the namespaces t/a and t/b."""
    table = pa.table({"topic": topics})
    if properties is not None:
        table = table.append_column("properties", pa.array(properties, PROPERTIES_TYPE))
    return Lot(["t/a", "t/b"], table, [0, len(topics) // 2, len(topics)])


def test_each_namespace_has_the_partitions_of_its_own_topics() -> None:
    made = additions(
        lot(
            *(f"{START}/a/{name}" for name in ("p-partition-0", "p-partition-4", "x")),
            *(f"{START}/b/{name}" for name in ("p-partition-1", "q-partition-0", "y")),
        )
    )
    assert [(str(name), dict(change.partitioned)) for name, change in made] == [
        ("t/a", {f"{START}/a/p": 5}),
        ("t/b", {f"{START}/b/p": 2, f"{START}/b/q": 1}),
    ]
    assert made[1][0] == NamespaceName("t", "b")
    assert made[1][1].added[2] == f"{START}/b/y".encode()
    assert all(change.adds_only for _, change in made)


def test_only_a_namespace_with_properties_has_property_rows() -> None:
    topics = [f"{START}/{space}/{name}" for space in "ab" for name in "xy"]
    pairs = [("k", "v"), ("l", "w"), ("k", "last")]
    (_, first), (_, second) = additions(lot(*topics, properties=[[], None, None, pairs]))
    assert first.properties is None
    assert second.properties is not None
    assert second.properties.names is second.added
    assert second.properties.of(1) == {"l": "w", "k": "last"}
    assert second.properties.texts == [b"", b"1:l:w\xfe1:k:last"]


def test_a_slice_of_a_longer_table_has_its_own_properties() -> None:
    topics = [f"{START}/{space}/{name}" for space in "xab" for name in "xy"]
    longer = lot(*topics, properties=[[("k", str(row))] for row in range(6)])
    cut = Lot(longer.names, longer.table.slice(2), [0, 2, 4])
    found = [change.properties for _, change in additions(cut)]
    assert [rows.texts for rows in found if rows is not None] == [
        [b"1:k:2", b"1:k:3"],
        [b"1:k:4", b"1:k:5"],
    ]


def test_an_invalid_namespace_name_is_refused() -> None:
    with pytest.raises(InvalidNameError):
        additions(Lot(["nothing"], pa.table({"topic": ["x"]}), [0, 1]))

"""The names of a list looked at, by the batch.

Arrow takes the names of usual form apart, all at once; what it does not recognize is looked at one
by one, as :mod:`proto.names` judges it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from loadgen.corpus.source import full_topic_name
from proto.names import MAX_PARTITIONS, PARTITION_SEPARATOR, InvalidNameError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.corpus.lists.pieces import Batch

CHECKED = pa.schema(
    [
        ("namespace", pa.string()),
        ("topic", pa.string()),
        ("base", pa.string()),
        ("index", pa.int32()),
        ("partitions", pa.int32()),
        ("properties", pa.map_(pa.string(), pa.string())),
    ]
)
# ASCII without spaces; everything else is looked at one by one.
_USUAL = r"^(?:non-)?persistent://(?P<namespace>[-=:.\w]+/[-=:.\w]+)/[!-.0-~]+$"
_PARTITION = rf"^(?P<base>.*){PARTITION_SEPARATOR}(?P<index>0|[1-9][0-9]{{0,4}})$"
_LARGE_NUMBER = rf"{PARTITION_SEPARATOR}[0-9]{{6,}}$"


@dataclass(frozen=True)
class CheckedRows:
    """The topics of a batch.

    Attributes:
        rows: Valid ones, in the schema ``CHECKED``, in no order.
        invalid: Number in the piece and what is wrong, of the others.
    """

    rows: pa.Table
    invalid: list[tuple[int, str]]


def checked(batch: Batch) -> CheckedRows:
    """Look at the names of a batch; a partitioned topic without its partitions becomes these."""
    usual = _usual(batch)
    rest = pc.and_(pc.invert(usual), pc.is_valid(batch.names))
    odd: list[dict[str, Any]] = []
    invalid: list[tuple[int, str]] = []
    for place in pc.indices_nonzero(rest).to_pylist():
        try:
            odd += _rows_of(batch, place)
        except InvalidNameError as error:
            invalid.append((batch.first + place, str(error)))
    tables = [_taken_apart(batch, usual), pa.Table.from_pylist(odd, schema=CHECKED)]
    return CheckedRows(pa.concat_tables(tables), invalid)


def _usual(batch: Batch) -> pa.Array:
    """Tell which rows Arrow can take apart."""
    usual = pc.match_substring_regex(batch.names, _USUAL)
    large = pc.match_substring_regex(batch.names, _LARGE_NUMBER)
    single = pc.match_substring_regex(batch.names, _PARTITION)
    expanded = pc.and_(pc.not_equal(pc.fill_null(batch.partitions, 0), 0), pc.invert(single))
    fits = pc.and_(usual, pc.invert(pc.or_(large, expanded)))
    if not _is_text(batch.properties):
        fits = pc.and_(fits, pc.is_null(batch.properties))
    return pc.fill_null(fits, False)


def _is_text(properties: pa.Array) -> bool:
    try:
        properties.keys.cast(pa.string())
        properties.items.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _taken_apart(batch: Batch, usual: pa.Array) -> pa.Table:
    names = batch.names.filter(usual).cast(pa.string())
    partition = pc.extract_regex(names, _PARTITION)
    columns = {
        "namespace": pc.struct_field(pc.extract_regex(names, _USUAL), "namespace"),
        "topic": names,
        "base": pc.coalesce(pc.struct_field(partition, "base"), names),
        "index": pc.fill_null(pc.struct_field(partition, "index").cast(pa.int32()), -1),
        "partitions": batch.partitions.filter(usual),
        "properties": _texts(batch.properties.filter(usual)),
    }
    return pa.table(columns, schema=CHECKED)


def _texts(properties: pa.Array) -> pa.Array:
    """Return properties as texts; none where there are none."""
    if properties.null_count == len(properties):
        offsets = pa.array([0] * (len(properties) + 1), pa.int32())
        nothing = pa.array([], pa.string())
        return pa.MapArray.from_arrays(offsets, nothing, nothing)
    return properties.cast(CHECKED.field("properties").type)


def _rows_of(batch: Batch, place: int) -> Iterator[dict[str, Any]]:
    """Yield what a row names: a topic, or each partition of one that says how many it has.

    Raises:
        InvalidNameError: It is no topic.
    """
    partitions = batch.partitions[place].as_py()
    name = full_topic_name(batch.names[place].as_py())
    try:
        pairs = [
            (key.decode(), (value or b"").decode())
            for key, value in batch.properties[place].as_py() or ()
        ]
    except UnicodeDecodeError:
        raise InvalidNameError(f"the properties of {name} are not UTF-8") from None
    if not 0 <= (partitions or 0) <= MAX_PARTITIONS:
        raise InvalidNameError(f"{name} cannot have {partitions} partitions")
    row = {
        "namespace": str(name.namespace),
        "base": str(name.partitioned_name),
        "partitions": partitions,
        "properties": pairs,
    }
    if partitions and name.partition_index < 0:
        for index in range(partitions):
            yield row | {"topic": f"{name}{PARTITION_SEPARATOR}{index}", "index": index}
    else:
        yield row | {"topic": str(name), "index": name.partition_index}

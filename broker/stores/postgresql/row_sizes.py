"""Sizes of rows: batches of a large change, and the largest that an index of PostgreSQL holds."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from broker.stores.changes import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.stores.changes import TopicChanges
    from broker.stores.property_rows import PropertyRows

MAX_ROW_BYTES = 2_600
"""Largest name, or name with one property's key and value, that an index holds."""
ROWS_PER_STATEMENT = 10_000
"""Rows that one statement of a large change writes."""
_SHOWN_CHARACTERS = 80

T = TypeVar("T")


def batched(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield values in lists of at most a size."""
    remaining = iter(values)
    while batch := list(islice(remaining, size)):
        yield batch


def check_names(changes: TopicChanges) -> None:
    """Refuse names that an index cannot hold, before anything is sent."""
    for part in batched(changes.added, ROWS_PER_STATEMENT):
        longest = max(part, key=len)
        _check_size(longest, len(longest))
    for base in changes.partitioned:
        _check_size(base.encode(), len(base.encode()))


def property_records(number: int, rows: PropertyRows) -> Iterator[tuple[int, bytes, bytes, bytes]]:
    """Yield the table's rows for properties of a namespace, or refuse one that is too large."""
    for name, key, value in rows.triples():
        key_bytes, value_bytes = key.encode(), value.encode()
        _check_size(name, len(name) + len(key_bytes) + len(value_bytes))
        yield number, name, key_bytes, value_bytes


def _check_size(name: bytes, size_bytes: int) -> None:
    if size_bytes > MAX_ROW_BYTES:
        shown = name.decode()[:_SHOWN_CHARACTERS]
        raise StoreError(
            f"{shown}...: a name, with the key and value of a property, may have "
            f"{MAX_ROW_BYTES:,} bytes in a PostgreSQL store, this has {size_bytes:,}; shorten it"
        )

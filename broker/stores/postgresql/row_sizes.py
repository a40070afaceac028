"""Row sizes: batches of a large change, and the largest row of a PostgreSQL index."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from broker.stores.changes import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.stores.changes import TopicChanges
    from broker.stores.property_rows import PropertyRows

MAX_ROW_BYTES = 2_600
"""Largest index entry: a name, or a name with one property's key and value."""
ROWS_PER_STATEMENT = 10_000
"""Rows written by one statement of a large change."""
_SHOWN_CHARACTERS = 80

T = TypeVar("T")


def batched(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield values in lists of at most a size."""
    remaining = iter(values)
    while batch := list(islice(remaining, size)):
        yield batch


def check_names(changes: TopicChanges) -> None:
    """Refuse names too long for an index, before sending."""
    for part in batched(changes.added, ROWS_PER_STATEMENT):
        longest = max(part, key=len)
        _check_size(longest, len(longest))
    for base in changes.partitioned:
        _check_size(base.encode(), len(base.encode()))


def property_records(number: int, rows: PropertyRows) -> Iterator[tuple[int, bytes, bytes, bytes]]:
    """Yield table rows for a namespace's properties; refuse oversized properties."""
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

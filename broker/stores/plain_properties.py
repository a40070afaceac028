"""Topic properties as Python dicts, used if Arrow is not installed; for thousands of topics.

The classes have the methods of PropertyRows and NamespaceProperties, but not their speed with
millions of topics.
"""

from __future__ import annotations

from itertools import compress, repeat
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.topic_lists.sequence import Selection, TopicListing

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from broker.stores.changes import TopicChanges
    from broker.stores.snapshots.snapshot import Mode, NamespaceSnapshot

_NAMES_PER_STEP = 2_048
_PAIR_BYTES = 100
"""Bytes of a property beside its text: two texts, and a place in a mapping."""


class PlainRows:
    """Topics' names and properties: row i has the i-th name; see PropertyRows."""

    texts: Sequence[bytes] | None = None

    def __init__(self, names: Sequence[bytes], rows: Sequence[Mapping[str, str]]) -> None:
        self.names = names
        self._rows = rows

    @staticmethod
    def from_rows(names: Sequence[bytes], rows: Sequence[Mapping[str, str]]) -> PlainRows:
        """Make rows of names and the properties of each; see PropertyRows."""
        return PlainRows(names, rows)

    @staticmethod
    def same_for_all(names: Sequence[bytes], properties: Mapping[str, str]) -> PlainRows:
        """Make rows in which all names have the same properties; see PropertyRows."""
        return PlainRows(names, list(repeat(properties, len(names))))

    @property
    def pairs(self) -> int:
        """Total number of properties of all topics."""
        return sum(map(len, self._rows))

    def of(self, row: int) -> Mapping[str, str]:
        """Return the properties of the topic in a row."""
        return self._rows[row]

    def rows(self) -> Iterator[Mapping[str, str]]:
        """Yield the properties of each topic, row by row."""
        yield from self._rows

    def filter(self, kept: Sequence[bool]) -> PlainRows:
        """Return only the rows whose value in ``kept`` is true."""
        return PlainRows(list(compress(self.names, kept)), list(compress(self._rows, kept)))

    def triples(self) -> Iterator[tuple[bytes, str, str]]:
        """Yield each property as name, key and value.

        For a repeated name, only the last row counts.
        """
        for name, row in dict(zip(self.names, self._rows, strict=True)).items():
            yield from ((name, key, value) for key, value in row.items())


class PlainProperties:
    """An immutable version of the properties of a namespace's topics; see NamespaceProperties."""

    def __init__(self, by_name: Mapping[bytes, Mapping[str, str]] | None = None) -> None:
        self._by_name = by_name or {}

    @property
    def nbytes(self) -> int:
        """Approximate memory of all properties in bytes."""
        return sum(
            _PAIR_BYTES + len(key) + len(value)
            for row in self._by_name.values()
            for key, value in row.items()
        )

    def changed(
        self, _: NamespaceSnapshot, after: NamespaceSnapshot, changes: TopicChanges
    ) -> PlainProperties:
        """Return the properties after a change of topics; see NamespaceProperties."""
        given = changes.properties
        if given is None and not self._by_name:
            return self
        kept = dict(self._by_name)
        forgotten = [name.encode() for name, count in changes.partitioned.items() if not count]
        for name in (*changes.removed, *forgotten):
            kept.pop(name, None)
        if given is not None:
            for name, row in zip(given.names, given.rows(), strict=True):
                kept.pop(name, None)
                if row and after.exists(name.decode()):
                    kept[name] = row
        return PlainProperties(kept)

    def of(self, _: NamespaceSnapshot, name: bytes) -> dict[str, str]:
        """Return the properties of a topic or partitioned topic; empty if it has none."""
        return dict(self._by_name.get(name, ()))

    def select(
        self, snapshot: NamespaceSnapshot, mode: Mode, properties: Mapping[str, str]
    ) -> Generator[None, None, TopicListing]:
        """Return the user topics that have all given properties; pauses between steps."""
        wanted = properties.items()
        found: set[bytes] = set()
        for count, (name, row) in enumerate(self._by_name.items(), start=1):
            if wanted <= row.items():
                found.add(name)
            if count % _NAMES_PER_STEP == 0:
                yield
        kinds = (
            (snapshot.non_persistent, pb.CommandGetTopicsOfNamespace.PERSISTENT),
            (snapshot.persistent, pb.CommandGetTopicsOfNamespace.NON_PERSISTENT),
        )
        selected = []
        for names, other in kinds:
            if mode != other:
                selection = Selection(names)
                for block in names.blocks():
                    selection.keep(block, bytes(name in found for name in block.names()))
                    yield
                selected.append((yield from selection.finishing()))
        return TopicListing(*selected)

"""An operator's own list of topics, counted by namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from loadgen.corpus.source import is_parquet, names_of_text, parsed_name
from loadgen.errors import UsageError
from proto.invalid_rows import InvalidRows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from proto.names import TopicName

_ROWS_AT_ONCE = 10_000
_NAMESPACES_SHOWN = 3


@dataclass
class NamespaceSize:
    """The number of a namespace's persistent topics, and the sum of their names' lengths."""

    topics: int = 0
    name_bytes: int = 0


@dataclass(frozen=True)
class OwnTopics:
    """A file or directory of topics, and the sizes of its namespaces.

    Attributes:
        invalid: What is told of names that are invalid and left out; empty: there are none.
        skip_invalid: Whether invalid topics are left out, these and what else an import refuses.
    """

    path: Path
    namespaces: Mapping[str, NamespaceSize]
    invalid: str = ""
    skip_invalid: bool = False

    @property
    def topics(self) -> int:
        """Persistent topics in all."""
        return sum(size.topics for size in self.namespaces.values())

    def chosen(self, names: Sequence[str]) -> dict[str, NamespaceSize]:
        """Return the namespaces of these names; of none, the largest of all.

        Raises:
            UsageError: One is not in the file.
        """
        if not names:
            largest = max(self.namespaces, key=lambda name: (self.namespaces[name].topics, name))
            return {largest: self.namespaces[largest]}
        missing = [name for name in names if name not in self.namespaces]
        if missing:
            by_size = sorted(self.namespaces, key=lambda name: -self.namespaces[name].topics)
            known = ", ".join(by_size[:_NAMESPACES_SHOWN])
            raise UsageError(
                f"--namespace {missing[0][:100]} has no persistent topic in {self.path}; its "
                f"largest namespaces are: {known}"
            )
        return {name: self.namespaces[name] for name in names}


def read_own_topics(path: Path, *, skip_invalid: bool = False) -> OwnTopics:
    """Count the topics of a text file (a full name a line), a Parquet file or a folder of them.

    Args:
        path: Where they are.
        skip_invalid: Leave invalid ones out; otherwise they are refused.

    Raises:
        UsageError: It cannot be read, has invalid topics, or names no persistent topic.
    """
    sizes: dict[str, NamespaceSize] = {}
    invalid = InvalidRows(path)
    try:
        for name in _names(path, invalid):
            if name.persistent:
                size = sizes.setdefault(str(name.namespace), NamespaceSize())
                size.topics += 1
                size.name_bytes += len(str(name).encode())
    except (OSError, KeyError, pa.ArrowException) as error:
        raise UsageError(f"--topics {path} cannot be read as topics: {error}") from None
    if invalid.count and not skip_invalid:
        raise UsageError(f"--topics {invalid.refusal}")
    if not sizes:
        raise UsageError(
            f"--topics {path} names no persistent topic: one full name a line, such as "
            "persistent://my-tenant/my-namespace/my-topic"
        )
    return OwnTopics(path, sizes, str(invalid) if invalid.count else "", skip_invalid)


def _names(path: Path, invalid: InvalidRows) -> Iterator[TopicName]:
    """Yield the valid names of all files, and count the others."""
    for file in sorted(path.glob("*.parquet")) if path.is_dir() else [path]:
        if is_parquet(file):
            yield from _names_of_parquet(file, invalid, file.name if path.is_dir() else "")
        else:
            yield from names_of_text(file, invalid)


def _names_of_parquet(file: Path, invalid: InvalidRows, place: str) -> Iterator[TopicName]:
    number = 0
    with pq.ParquetFile(file) as parquet:
        for batch in parquet.iter_batches(_ROWS_AT_ONCE, columns=["topic"]):
            # Texts as bytes, for no reader of Parquet looks at them.
            for text in batch.column("topic").cast(pa.binary()).to_pylist():
                number += 1
                where = f"{place}, row {number}" if place else f"row {number}"
                name = parsed_name(text or b"", invalid, where)
                if name is not None:
                    yield name

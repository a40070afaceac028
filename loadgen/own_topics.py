"""An operator's own topics: what a file names, and which namespace is worth listing.

The broker that imports the file checks every line; here the names are only counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from loadgen.failures import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_PARQUET_MAGIC = b"PAR1"
_LINES_AT_ONCE = 100_000
# What clients list are persistent topics; anything that does not look like one is the broker's.
_NAMESPACE = r"^persistent://(?P<namespace>[^/]+/[^/]+)/."
_NAMESPACES_SHOWN = 3


@dataclass(frozen=True)
class NamespaceSize:
    """Counts a namespace's persistent topics, and sums their names' lengths."""

    topics: int = 0
    name_bytes: int = 0

    def plus(self, topics: int, name_bytes: int) -> NamespaceSize:
        """Return the size with more topics."""
        return NamespaceSize(self.topics + topics, self.name_bytes + name_bytes)


@dataclass(frozen=True)
class OwnTopics:
    """A file or directory of topics, and the sizes of its namespaces."""

    path: Path
    namespaces: Mapping[str, NamespaceSize]

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


def read_own_topics(path: Path) -> OwnTopics:
    """Count the topics of a text file (a full name a line), a Parquet file or a folder of them.

    Raises:
        UsageError: It cannot be read, or names no persistent topic.
    """
    sizes: dict[str, NamespaceSize] = {}
    try:
        for names in _names(path):
            for namespace, topics, name_bytes in _counted(names):
                sizes[namespace] = sizes.get(namespace, NamespaceSize()).plus(topics, name_bytes)
    except (OSError, KeyError, pa.ArrowException, UnicodeDecodeError) as error:
        raise UsageError(f"--topics {path} cannot be read as topics: {error}") from None
    if not sizes:
        raise UsageError(
            f"--topics {path} names no persistent topic: one full name a line, such as "
            "persistent://my-tenant/my-namespace/my-topic"
        )
    return OwnTopics(path, sizes)


def _names(path: Path) -> Iterator[pa.Array]:
    """Yield all names, some at once."""
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    for file in files:
        yield from _column(file) if _is_parquet(file) else _lines(file)


def _is_parquet(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(_PARQUET_MAGIC)) == _PARQUET_MAGIC


def _column(file: Path) -> Iterator[pa.Array]:
    with pq.ParquetFile(file) as parquet:
        for batch in parquet.iter_batches(_LINES_AT_ONCE, columns=["topic"]):
            yield batch.column("topic")


def _lines(file: Path) -> Iterator[pa.Array]:
    with file.open(encoding="utf-8-sig") as lines:
        pending: list[str] = []
        for line in lines:
            pending.append(line.strip())
            if len(pending) >= _LINES_AT_ONCE:
                yield pa.array(pending, pa.string())
                pending.clear()
        yield pa.array(pending, pa.string())


def _counted(names: pa.Array) -> Iterator[tuple[str, int, int]]:
    """Yield (namespace, persistent topics, bytes of their names)."""
    found = pc.extract_regex(names, _NAMESPACE)
    table = pa.table(
        {
            "namespace": pc.struct_field(found, "namespace"),
            "bytes": pc.binary_length(names),
        }
    )
    table = table.filter(pc.is_valid(table["namespace"]))
    sums = table.group_by("namespace").aggregate([("bytes", "count"), ("bytes", "sum")])
    for row in sums.to_pylist():
        yield row["namespace"], row["bytes_count"], row["bytes_sum"]


_NUMBER = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([kKmM]?)")
_FACTORS = {"": 1, "k": 1000, "m": 1_000_000}


def parse_topics(text: str) -> int | None:
    """Return the number that ``--topics`` gives, ``1M`` for example; None: it names a file.

    Raises:
        UsageError: The number is not a whole one above 0.
    """
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        return None
    topics = round(float(found[1]) * _FACTORS[found[2].lower()], 6)
    if topics < 1 or topics != int(topics):
        raise UsageError(f"--topics {text} is not a whole number of topics above 0")
    return int(topics)

"""A running cluster's topics, read by admin REST and written down as a corpus.

Namespaces are read one after the other, a few at once, so that memory is bounded by these and by
the rows that wait for a file of their own.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from client.admin.errors import AdminRefusedError
from client.admin.url import shown_url
from loadgen.access import admin_of
from loadgen.corpus.corpus import Corpus, open_corpus
from loadgen.corpus.manifest import make_manifest, write_manifest
from loadgen.corpus.part_file import part_path, write_part_file
from loadgen.corpus.replacing import replacing
from loadgen.corpus.synthetic import TOPIC_SCHEMA
from loadgen.errors import LoadgenError
from loadgen.transfer.loader import admin_errors
from loadgen.transfer.retries import Retries
from proto.names import (
    PERSISTENT,
    NamespaceName,
    TopicName,
    partition_index,
    without_partition,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from client.admin.pulsar_admin import PulsarAdmin
    from client.admin.rest import NameBatches
    from loadgen.corpus.part_file import Entry

T = TypeVar("T")

ROWS_PER_FILE = 200_000
NAMESPACES_AT_ONCE = 4
CALLS_AT_ONCE = 16
_CALL_SECONDS = 120.0
_SYSTEM_TENANT = "pulsar"
"""Holds what a Pulsar keeps for itself."""


@dataclass
class _Writer:
    """Writes namespaces into files of some size."""

    directory: Path
    entries: list[Entry] = field(default_factory=list)
    _pending: list[tuple[str, pa.RecordBatch]] = field(default_factory=list)
    _files: int = 0

    async def add(self, name: str, rows: pa.RecordBatch) -> None:
        self._pending.append((name, rows))
        if sum(len(rows) for _, rows in self._pending) >= ROWS_PER_FILE:
            await self.flush()

    async def flush(self) -> None:
        if self._pending:
            target = part_path(self.directory, self._files)
            self.entries += await asyncio.to_thread(write_part_file, target, self._pending)
            self._pending = []
            self._files += 1


async def take_snapshot(
    admin_url: str,
    out: Path,
    on_topics: Callable[[int], None],
    *,
    namespaces: Sequence[str] = (),
    properties: bool = False,
) -> Corpus:
    """Write the topics of a cluster down as a corpus at ``out``; an older one is replaced.

    Args:
        admin_url: The web address of one of its brokers.
        out: The directory of the corpus.
        on_topics: Told how many topics were read.
        namespaces: Those to read; all but Pulsar's own without it.
        properties: Read the properties of each topic too, a call for each.

    Raises:
        LoadgenError: The cluster cannot be asked, has no topics, or ``out`` cannot be written.
    """
    where = shown_url(admin_url)
    with admin_errors("Reading the topics", where), replacing(out) as directory:
        async with admin_of(admin_url, _CALL_SECONDS) as admin:
            reader = _Reader(admin, properties=properties)
            names = sorted(namespaces) or await reader.namespaces()
            writer, topics = _Writer(directory), 0
            for some in batched(names, NAMESPACES_AT_ONCE):
                found = await asyncio.gather(*(reader.rows(name) for name in some))
                for name, rows in zip(some, found, strict=True):
                    topics += len(rows)
                    if len(rows):
                        await writer.add(name, rows)
                on_topics(topics)
            await writer.flush()
        if not topics:
            raise LoadgenError(f"{where} lists no topic in {len(names)} namespaces.")
        origin = {
            "snapshot_of": where,
            "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "namespaces_without_topics": len(names) - len(writer.entries),
            "partitioned_topics_without_listed_partitions": reader.without_partitions,
        }
        write_manifest(make_manifest(None, origin, writer.entries), directory)
    return open_corpus(out)


class _Reader:
    """Reads namespaces; the mutable state is the count of what listings do not show."""

    def __init__(self, admin: PulsarAdmin, *, properties: bool) -> None:
        self._admin = admin
        self._properties = properties
        self._calls = asyncio.Semaphore(CALLS_AT_ONCE)
        self.without_partitions = 0

    async def namespaces(self) -> list[str]:
        """Return the names of all namespaces but those that a Pulsar keeps for itself."""
        names: list[str] = []
        for tenant in await self._admin.tenants.list():
            if tenant != _SYSTEM_TENANT:
                names += await self._admin.namespaces.list(tenant)
        return sorted(names)

    async def rows(self, name: str) -> pa.RecordBatch:
        """Return the rows of a namespace in order, persistent and non-persistent topics."""
        namespace = NamespaceName.parse(name)
        topics = sorted(await self._names(self._admin.topics.list, namespace))
        partitioned = set(await self._names(self._admin.topics.list_partitioned, namespace))
        bases = [_base(topic, partitioned) for topic in topics]
        partitions: dict[str, int] = {}
        for topic, base in zip(topics, bases, strict=True):
            if base in partitioned:
                partitions[base] = max(partitions.get(base, 0), partition_index(topic) + 1)
        self.without_partitions += len(partitioned - partitions.keys())
        properties = await self._properties_of(set(bases)) if self._properties else {}
        columns = [
            pa.repeat(pa.scalar(namespace.tenant), len(topics)),
            pa.repeat(pa.scalar(name), len(topics)),
            pa.array(topics, pa.string()),
            pa.array([partitions.get(base, 0) for base in bases], pa.int32()),
            pa.array(
                [sorted(properties.get(base, {}).items()) for base in bases],
                TOPIC_SCHEMA.field("properties").type,
            ),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=TOPIC_SCHEMA)

    async def _names(
        self, listing: Callable[[NamespaceName], NameBatches], namespace: NamespaceName
    ) -> list[str]:
        async def ask() -> list[str]:
            async with self._calls:
                return [name async for batch in listing(namespace) for name in batch]

        return await Retries().call(ask)

    async def _properties_of(self, bases: set[str]) -> dict[str, Mapping[str, str]]:
        """Return the properties of topics, by their names without partition."""
        persistent = [base for base in bases if base.startswith(f"{PERSISTENT}://")]
        found: dict[str, Mapping[str, str]] = {}
        for some in batched(persistent, 1000):
            answers = await asyncio.gather(*(self._properties_of_topic(base) for base in some))
            found.update(zip(some, answers, strict=True))
        return found

    async def _properties_of_topic(self, base: str) -> Mapping[str, str]:
        async def ask() -> Mapping[str, str]:
            async with self._calls:
                return await self._admin.topics.properties(TopicName.parse(base))

        try:
            return await Retries().call(ask)
        except AdminRefusedError:  # it is gone, or may not be looked at
            return {}


def batched(values: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Yield the values in groups of at most ``size``."""
    left = iter(values)
    while group := tuple(islice(left, size)):
        yield group


def _base(topic: str, partitioned: set[str]) -> str:
    """Return the partitioned topic that a name is a partition of, or the name itself."""
    base = without_partition(topic)
    return base if base in partitioned else topic

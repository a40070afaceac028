"""A server's listings by admin REST: written down as a corpus, or compared with one.

Namespaces are read a few at once, so that memory is bounded by these and by the rows that wait for
a file of their own.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from client.admin.errors import AdminRefusedError
from client.admin.url import shown_url
from loadgen.access import admin_of
from loadgen.errors import ExitCode, LoadgenError
from loadgen.topics.calls import CALL_SECONDS, Retries, admin_errors, side_by_side
from loadgen.topics.corpus import Corpus, open_corpus, replacing, write_part_file
from loadgen.topics.manifest import write_manifest
from loadgen.topics.rows import TOPIC_SCHEMA
from proto.names import (
    NON_PERSISTENT,
    PERSISTENT,
    NamespaceName,
    TopicName,
    partition_index,
    without_partition,
)
from proto.topic_hash import topics_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from client.admin.pulsar_admin import PulsarAdmin
    from client.admin.rest import NameBatches
    from loadgen.topics.manifest import Entry

ROWS_PER_FILE = 200_000
NAMESPACES_AT_ONCE = 4
"""Each holds all names of a namespace."""
CALLS_AT_ONCE = 16
_SYSTEM_TENANT = "pulsar"
"""Holds what a Pulsar keeps for itself."""
_NOT_FOUND = 404
_SHOWN = 3


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
        writer = _Writer(directory)
        async with admin_of(admin_url, CALL_SECONDS) as admin:
            reader = _Reader(admin, properties=properties)
            names = sorted(namespaces) or await reader.namespaces()
            for start in range(0, len(names), NAMESPACES_AT_ONCE):
                some = names[start : start + NAMESPACES_AT_ONCE]
                found = await asyncio.gather(*(reader.rows(name) for name in some))
                for name, rows in zip(some, found, strict=True):
                    await writer.add(name, rows)
                on_topics(writer.topics)
            await writer.flush()
        if not writer.topics:
            raise LoadgenError(f"{where} lists no topic in {len(names)} namespaces.")
        origin = {
            "snapshot_of": where,
            "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "namespaces_without_topics": len(names) - len(writer.entries),
            "partitioned_topics_without_listed_partitions": reader.without_partitions,
        }
        manifest = write_manifest(directory, None, origin, writer.entries)
    return Corpus(out, manifest)


@dataclass
class _Writer:
    """Writes namespaces into files of some size."""

    directory: Path
    topics: int = 0
    entries: list[Entry] = field(default_factory=list)
    _pending: list[tuple[str, pa.RecordBatch]] = field(default_factory=list)
    _files: int = 0

    async def add(self, name: str, rows: pa.RecordBatch) -> None:
        if len(rows):
            self.topics += len(rows)
            self._pending.append((name, rows))
        if sum(len(rows) for _, rows in self._pending) >= ROWS_PER_FILE:
            await self.flush()

    async def flush(self) -> None:
        if self._pending:
            pending, part, self._pending = self._pending, self._files, []
            self.entries += await asyncio.to_thread(write_part_file, self.directory, part, pending)
            self._files += 1


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
        bases = [
            base if (base := without_partition(topic)) in partitioned else topic for topic in topics
        ]
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
        waiting = iter([base for base in bases if base.startswith(f"{PERSISTENT}://")])
        found: dict[str, Mapping[str, str]] = {}

        async def read() -> None:
            for base in waiting:
                found[base] = await self._properties_of_topic(TopicName.parse(base))

        await side_by_side(CALLS_AT_ONCE, read)
        return found

    async def _properties_of_topic(self, topic: TopicName) -> Mapping[str, str]:
        async def ask() -> Mapping[str, str]:
            async with self._calls:
                return await self._admin.topics.properties(topic)

        try:
            return await Retries().call(ask)
        except AdminRefusedError:  # it is gone, or may not be looked at
            return {}


# -- Compared -------------------------------------------------------------------------------------


@dataclass
class Verification:
    """The result of listings that were compared with the manifest of what was loaded.

    Attributes:
        topics: Topics that were listed, and are right.
        left_out: Non-persistent topics that were not compared.
        wrong: A sentence for each namespace that differs.
    """

    namespaces: int = 0
    topics: int = 0
    left_out: int = 0
    wrong: list[str] = field(default_factory=list)

    def require(self) -> None:
        """Fail if something differs.

        Raises:
            LoadgenError: It does; says what.
        """
        if self.wrong:
            more = len(self.wrong) - _SHOWN
            told = [*self.wrong[:_SHOWN], *([f"and {more:,} more namespaces"] if more > 0 else [])]
            raise LoadgenError(
                f"the server does not list what was loaded: {'; '.join(told)}",
                ExitCode.CORRECTNESS,
            )


async def verify_loaded(
    path: Path, admin_url: str, on_namespaces: Callable[[int], None], *, imported: bool = False
) -> Verification:
    """List every namespace of a corpus in a server and compare its topics with the manifest.

    What a Floodgate ``imported`` is compared whole. Of what was created by REST persistent topics
    are: of others a Pulsar lists only those that are in use.

    Raises:
        LoadgenError: It cannot be asked.
    """
    corpus, found = open_corpus(path), Verification()
    domains = (PERSISTENT, NON_PERSISTENT) if imported else (PERSISTENT,)
    waiting = iter(corpus.manifest.namespaces.items())

    async def compare() -> None:
        for name, entry in waiting:
            names = await Retries().call(lambda name=name: _listed(admin, name, domains))  # type: ignore[misc]
            expected = entry if imported else entry.asked
            if (len(names), topics_hash(names)) == (expected.topics, expected.hash):
                found.topics += len(names)
            else:
                found.wrong.append(_difference(corpus, name, names, domains))
            found.left_out += entry.topics - expected.topics
            found.namespaces += 1
            on_namespaces(found.namespaces)

    with admin_errors(f"Listing the topics of {path}", shown_url(admin_url)):
        async with admin_of(admin_url, CALL_SECONDS) as admin:
            await side_by_side(NAMESPACES_AT_ONCE, compare)
    return found


async def _listed(admin: PulsarAdmin, name: str, domains: Sequence[str]) -> list[str]:
    """Return the topics of a namespace; none of one that is not there."""
    names: list[str] = []
    try:
        async for batch in admin.topics.list(NamespaceName.parse(name), domains):
            names += batch
    except AdminRefusedError as error:
        if error.status != _NOT_FOUND:
            raise
    return names


def _difference(corpus: Corpus, name: str, names: list[str], domains: Sequence[str]) -> str:
    """Return what differs between a listing and the files of the corpus."""
    rows = ds.dataset([str(file) for file in corpus.files], format="parquet")
    table = rows.to_table(columns=["topic"], filter=pc.field("namespace") == name)
    expected = {
        topic for topic in table["topic"].to_pylist() if topic.partition("://")[0] in domains
    }
    missing, more = expected - set(names), set(names) - expected
    parts = [
        f"{len(found):,} {what}, such as {min(found)}"
        for found, what in ((missing, "missing"), (more, "that the corpus does not have"))
        if found
    ]
    return f"{name} lists {' and '.join(parts) or 'a name twice'}"

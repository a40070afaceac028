"""Topics that a server lists through admin REST, saved as a corpus or compared with one.

A few namespaces are read in parallel, so memory is bounded by these and by the rows that wait to be
written to a file.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from client.admin.errors import AdminRefusedError
from client.admin.url import shown_url
from loadgen.access import admin_of
from loadgen.errors import ExitCode, LoadgenError
from loadgen.stored import readable
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
"""Namespaces read in parallel; each holds all names of a namespace."""
CALLS_AT_ONCE = 16
_SYSTEM_TENANT = "pulsar"
"""Tenant of Pulsar's internal topics."""
_NOT_FOUND = 404
_SHOWN = 3
_UNUSED = (
    ". A Pulsar deletes unused topics after a minute: set brokerDeleteInactiveTopicsEnabled=false "
    "in its broker.conf and restart it"
)


async def take_snapshot(
    admin_url: str,
    out: Path,
    on_topics: Callable[[int], None],
    *,
    namespaces: Sequence[str] = (),
    properties: bool = False,
) -> Corpus:
    """Save the topics of a running cluster as a corpus in ``out``, replacing an older one.

    Args:
        admin_url: The web address of a broker of the cluster.
        out: The directory of the corpus.
        on_topics: Called with the number of topics read so far.
        namespaces: The namespaces to read; by default all except Pulsar's own.
        properties: Whether to read the properties of each topic too, with a call for each.

    Raises:
        LoadgenError: The cluster cannot be reached, has no topics, or ``out`` cannot be written.
    """
    where = shown_url(admin_url)
    with admin_errors("Reading the topics", where), replacing(out) as directory:
        async with admin_of(admin_url, CALL_SECONDS) as admin:
            reader = _Reader(admin, properties)
            names = sorted(namespaces) or await _all_namespaces(admin)
            entries = await _written(reader, names, directory, on_topics)
        if not entries:
            raise LoadgenError(f"{where} lists no topic in {len(names)} namespaces.")
        origin = {
            "snapshot_of": where,
            "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "namespaces_without_topics": len(names) - len(entries),
            "partitioned_topics_without_listed_partitions": reader.without_partitions,
        }
        manifest = write_manifest(directory, None, origin, entries)
    return Corpus(out, manifest)


async def _all_namespaces(admin: PulsarAdmin) -> list[str]:
    """Return the names of all namespaces of a cluster except Pulsar's own."""
    tenants = [each for each in await admin.tenants.list() if each != _SYSTEM_TENANT]
    return sorted([name for each in tenants for name in await admin.namespaces.list(each)])


async def _written(
    reader: _Reader, names: Sequence[str], directory: Path, on_topics: Callable[[int], None]
) -> list[Entry]:
    """Write the topics of namespaces to the files of a corpus; return the manifest entries."""
    entries: list[Entry] = []
    pending: list[pa.Table] = []
    topics = files = 0
    for end in range(NAMESPACES_AT_ONCE, len(names) + NAMESPACES_AT_ONCE, NAMESPACES_AT_ONCE):
        some = names[end - NAMESPACES_AT_ONCE : end]
        found = await asyncio.gather(*map(reader.rows, some))
        pending += filter(len, found)
        topics += sum(map(len, found))
        on_topics(topics)
        waiting = sum(map(len, pending))
        if waiting >= ROWS_PER_FILE or (waiting and end >= len(names)):
            entries += await asyncio.to_thread(write_part_file, directory, files, pending)
            files, pending = files + 1, []
    return entries


@dataclass
class _Reader:
    """Reads the topics of namespaces through admin REST.

    Mutable state: the number of partitioned topics of which no partition is listed.
    """

    admin: PulsarAdmin
    properties: bool
    without_partitions: int = 0
    _calls: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CALLS_AT_ONCE))

    async def rows(self, name: str) -> pa.Table:
        """Return the persistent and non-persistent topics of a namespace as sorted rows."""
        namespace = NamespaceName.parse(name)
        topics = sorted(await _names(self.admin.topics.list, namespace))
        partitioned = set(await _names(self.admin.topics.list_partitioned, namespace))
        bases = [
            base if (base := without_partition(topic)) in partitioned else topic for topic in topics
        ]
        # For each base the last index, which is the largest, stays.
        last = dict(sorted(zip(bases, map(partition_index, topics), strict=True)))
        partitions = {base: last[base] + 1 for base in partitioned & last.keys()}
        self.without_partitions += len(partitioned - partitions.keys())
        properties = await self._properties_of(set(bases)) if self.properties else {}
        columns = {
            "tenant": [namespace.tenant] * len(topics),
            "namespace": [name] * len(topics),
            "topic": topics,
            "partitions": [partitions.get(base, 0) for base in bases],
            "properties": [sorted(properties.get(base, {}).items()) for base in bases],
        }
        return pa.Table.from_pydict(columns, TOPIC_SCHEMA)

    async def _properties_of(self, bases: set[str]) -> dict[str, Mapping[str, str]]:
        """Return the properties of each topic, by the topic's name without partition."""
        waiting = iter([base for base in bases if base.startswith(f"{PERSISTENT}://")])
        found: dict[str, Mapping[str, str]] = {}

        async def read() -> None:
            for base in waiting:
                topic = TopicName.parse(base)
                # The topic may be deleted, or access forbidden.
                with suppress(AdminRefusedError):
                    async with self._calls:
                        properties = self.admin.topics.properties
                        found[base] = await Retries().call(partial(properties, topic))

        await side_by_side(CALLS_AT_ONCE, read)
        return found


async def _names(listing: Callable[..., NameBatches], *arguments: object) -> list[str]:
    async def ask() -> list[str]:
        return [name async for batch in listing(*arguments) for name in batch]

    return await Retries().call(ask)


# -- Compared -------------------------------------------------------------------------------------


@dataclass
class Verification:
    """The result of comparing the topics that a server lists with those of a corpus.

    Attributes:
        topics: Number of listed topics that are right.
        left_out: Number of non-persistent topics, which were not compared.
    """

    namespaces: int = 0
    topics: int = 0
    left_out: int = 0


async def verify_loaded(
    path: Path, admin_url: str, on_namespaces: Callable[[int], None], *, imported: bool = False
) -> Verification:
    """List each namespace of a corpus on a server, and compare the topics with the manifest.

    Topics ``imported`` by Floodgate are all compared. Of topics created by REST only the persistent
    ones are compared, because Pulsar lists non-persistent topics only while they are in use.

    Raises:
        LoadgenError: The server cannot be reached, or its listing differs; the message names the
            difference.
    """
    corpus, found, wrong = open_corpus(path), Verification(), list[str]()
    domains = (PERSISTENT, NON_PERSISTENT) if imported else (PERSISTENT,)
    waiting = iter(corpus.manifest.namespaces.items())

    async def compare() -> None:
        for name, entry in waiting:
            names = await _listed(admin, name, domains)
            expected = entry if imported else entry.asked
            if (len(names), topics_hash(names)) == (expected.topics, expected.hash):
                found.topics += len(names)
            else:
                wrong.append(_difference(corpus, name, names, domains))
            found.left_out += entry.topics - expected.topics
            found.namespaces += 1
            on_namespaces(found.namespaces)

    with admin_errors(f"Listing the topics of {path}", shown_url(admin_url)):
        async with admin_of(admin_url, CALL_SECONDS) as admin:
            await side_by_side(NAMESPACES_AT_ONCE, compare)
    if wrong:
        more = [f"and {len(wrong) - _SHOWN:,} more namespaces"] if len(wrong) > _SHOWN else []
        said = f"the server does not list what was loaded: {'; '.join(wrong[:_SHOWN] + more)}"
        if not imported and any(" missing, " in each for each in wrong):
            said += _UNUSED
        raise LoadgenError(said, ExitCode.CORRECTNESS)
    return found


async def _listed(admin: PulsarAdmin, name: str, domains: Sequence[str]) -> list[str]:
    """Return the topics that a server lists for a namespace; empty if it has no such namespace."""
    try:
        return await _names(admin.topics.list, NamespaceName.parse(name), domains)
    except AdminRefusedError as error:
        if error.status != _NOT_FOUND:
            raise
        return []


def _difference(corpus: Corpus, name: str, names: list[str], domains: Sequence[str]) -> str:
    """Return words on the difference between a server's topics and those of the corpus."""
    of_namespace = pc.field("namespace") == name
    files = map(readable, corpus.files)
    tables = [pq.read_table(file, columns=["topic"], filters=of_namespace) for file in files]
    topics = pa.concat_tables(tables)["topic"].to_pylist()
    expected = {topic for topic in topics if topic.partition("://")[0] in domains}
    missing, more = expected - set(names), set(names) - expected
    parts = [
        f"{len(found):,} {what}, such as {min(found)}"
        for found, what in ((missing, "missing"), (more, "that the corpus does not have"))
        if found
    ]
    return f"{name} lists {' and '.join(parts) or 'a name twice'}"

"""Temporary namespaces that ``loadgen measure`` creates by admin REST and deletes."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from client.admin.errors import AdminRefusedError
from loadgen.access import admin_of
from loadgen.topics.calls import CALL_SECONDS, Retries, admin_errors
from loadgen.topics.loading import TopicLoader
from loadgen.topics.reading import TopicToCreate
from proto.names import NamespaceName, TopicName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from client.admin.pulsar_admin import PulsarAdmin

TENANT = "loadgen-measure"
_NOT_FOUND = 404
_ASKED = 32
"""Partitions of a topic to ask for: some in each bundle of a namespace."""
_SUFFIX_BYTES = len("-partition-0000")


@contextmanager
def own_namespaces(
    admin_url: str, sizes: Mapping[str, int], name_bytes: int
) -> Iterator[tuple[str, ...]]:
    """Create namespaces with topics for the length of a ``with`` block; yield their names.

    They belong to the tenant ``loadgen-measure``.

    Args:
        admin_url: ``http://host:port`` of the broker's web port.
        sizes: Number of topic names in each namespace, by its local name; 0 leaves it empty.
        name_bytes: Length of a full topic name in bytes.

    Raises:
        LoadgenError: The broker refuses, or cannot be reached.
    """
    names = {NamespaceName.parse(f"{TENANT}/{name}"): size for name, size in sizes.items()}
    topics = {
        _topic(each, name_bytes - _SUFFIX_BYTES): size for each, size in names.items() if size
    }
    try:
        asyncio.run(_make(admin_url, topics, list(names)))
        yield tuple(map(str, names))
    finally:
        asyncio.run(_delete(admin_url, list(topics), list(names)))


def _topic(namespace: NamespaceName, length: int) -> TopicName:
    """Return the name of the partitioned topic that fills a namespace."""
    return TopicName.parse(f"persistent://{namespace}/m".ljust(length, "m"))


async def _make(
    admin_url: str, topics: Mapping[TopicName, int], names: list[NamespaceName]
) -> None:
    with admin_errors("Making namespaces to measure with", admin_url):
        async with admin_of(admin_url, CALL_SECONDS) as admin:
            loader = TopicLoader(admin, concurrency=4)
            for each in names:
                await loader.prepare(each)
            wanted = [TopicToCreate(topic, size) for topic, size in topics.items()]
            await loader.load(wanted, lambda made: None)
            for topic, size in topics.items():
                await _loaded(admin, topic, size)


async def _loaded(admin: PulsarAdmin, topic: TopicName, size: int) -> None:
    """Wait until the broker has loaded all partitions of a topic.

    The first call for a topic of a bundle makes a real broker load all topics of the bundle, which
    slows down everything else for seconds; the call is answered after that.
    """
    for number in range(0, size, -(-size // _ASKED)):
        partition = TopicName.parse(f"{topic}-partition-{number}")
        await Retries().call(partial(admin.calls.ask, "GET", partition, "stats"))


async def _delete(admin_url: str, topics: list[TopicName], names: list[NamespaceName]) -> None:
    """Delete the created topics and namespaces; a namespace that has other topics stays."""
    with admin_errors(f"Deleting what was measured with, of tenant {TENANT},", admin_url):
        async with admin_of(admin_url, CALL_SECONDS) as admin:
            retries, topic, namespace = Retries(), admin.topics, admin.namespaces
            calls = [
                *(partial(topic.delete_partitioned, each, force=True) for each in topics),
                *(partial(namespace.delete, each) for each in names),
                partial(admin.tenants.delete, TENANT),
            ]
            for call in calls:
                try:
                    await retries.call(call)
                except AdminRefusedError as error:
                    if error.status != _NOT_FOUND:
                        raise

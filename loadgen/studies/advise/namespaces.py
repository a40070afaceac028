"""The namespaces of a question: of a list of topics, a running cluster, or a scenario."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from loadgen.access import admin_of
from loadgen.errors import UsageError
from loadgen.studies.advise.question import NamespaceShape
from loadgen.topics.calls import admin_errors
from loadgen.topics.reading import read_own_topics
from proto.names import NamespaceName

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadgen.documents.model import Topics

_CALL_SECONDS, _CALLS_AT_ONCE = 60.0, 8


def shapes_of_topics(topics: Topics) -> tuple[NamespaceShape, ...]:
    """Return the namespaces that a scenario makes up.

    Raises:
        UsageError: Its topics are in a file or a server.
    """
    if not topics.made:
        raise UsageError(
            "the scenario's topics are a server's, or in a file: name its --admin-url, or the file "
            "as --topics"
        )
    sizes = {each.name: each.topics or 0 for each in topics.expected()}
    each = topics.mean_name_bytes
    return tuple(NamespaceShape(name, size, size * each) for name, size in sizes.items())


def shapes_of_file(path: Path, names: Sequence[str]) -> tuple[NamespaceShape, ...]:
    """Return the namespaces of a list of topics, of these names; without names all.

    Raises:
        UsageError: It cannot be read, or names no persistent topic, or none of a namespace.
    """
    if not path.exists():
        raise UsageError(
            f"--topics {path} does not exist; save your topics with: pulsar-admin topics list "
            "my-tenant/my-namespace > topics.txt"
        )
    own = read_own_topics(path)
    sizes = own.chosen(names) if names else own.namespaces
    return tuple(NamespaceShape(name, each.topics, each.name_bytes) for name, each in sizes.items())


def shapes_of_cluster(admin_url: str, names: Sequence[str]) -> tuple[NamespaceShape, ...]:
    """Ask a running cluster, Floodgate or Pulsar, what listings of its namespaces hold.

    Args:
        admin_url: ``http://host:port`` of a broker's web port.
        names: Which namespaces; none are all of them.

    Raises:
        LoadgenError: It cannot be asked, or refuses.
        UsageError: It has no persistent topic, or none in a namespace that is named.
    """
    found = tuple(each for each in asyncio.run(_counted(admin_url, names)) if each.topics)
    missing = set(names) - {each.name for each in found}
    if missing or not found:
        where = f"--namespace {min(missing)[:100]}" if missing else "any namespace"
        raise UsageError(f"{admin_url} has no persistent topic in {where}")
    return found


async def _counted(admin_url: str, names: Sequence[str]) -> list[NamespaceShape]:
    at_once = asyncio.Semaphore(_CALLS_AT_ONCE)
    with admin_errors("Counting topics", admin_url):
        async with admin_of(admin_url, _CALL_SECONDS) as admin:

            async def count(name: str) -> NamespaceShape:
                topics = name_bytes = 0
                async with at_once:
                    async for batch in admin.namespaces.topics(NamespaceName.parse(name)):
                        topics += len(batch)
                        name_bytes += sum(len(each.encode()) for each in batch)
                return NamespaceShape(name, topics, name_bytes)

            wanted = list(names)
            if not wanted:
                for tenant in await admin.tenants.list():
                    wanted += await admin.namespaces.list(tenant)
            return list(await asyncio.gather(*map(count, sorted(wanted))))

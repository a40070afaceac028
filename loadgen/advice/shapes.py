"""The namespaces that an advice is for: of a list of topics, a corpus or a running cluster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from loadgen.access import admin_of
from loadgen.advice.workload import NamespaceShape
from loadgen.errors import UsageError
from loadgen.topics.calls import admin_errors
from loadgen.topics.corpus import open_corpus
from loadgen.topics.reading import read_own_topics
from proto.names import NamespaceName

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_CALL_SECONDS = 60.0
_CALLS_AT_ONCE = 8
_NAMES_SHOWN = 3


def shapes_of_file(path: Path) -> tuple[NamespaceShape, ...]:
    """Return the namespaces of a list of topics, text or Parquet.

    Raises:
        UsageError: It cannot be read, or names no persistent topic.
    """
    sizes = read_own_topics(path).namespaces
    return tuple(NamespaceShape(name, each.topics, each.name_bytes) for name, each in sizes.items())


def shapes_of_corpus(directory: Path) -> tuple[NamespaceShape, ...]:
    """Return the namespaces of what ``loadgen topics`` made.

    Raises:
        UsageError: It is no corpus.
    """
    entries = open_corpus(directory).manifest.namespaces
    return tuple(
        NamespaceShape(name, each.topics, each.name_bytes) for name, each in entries.items()
    )


def shapes_of_cluster(admin_url: str, names: Sequence[str]) -> tuple[NamespaceShape, ...]:
    """Ask a running cluster, Floodgate or Pulsar, what listings of its namespaces hold.

    Args:
        admin_url: ``http://host:port`` of a broker's web port.
        names: Which namespaces; none are all of them.

    Raises:
        LoadgenError: It cannot be asked, or refuses.
        UsageError: It has no persistent topic.
    """
    found = tuple(each for each in asyncio.run(_counted(admin_url, names)) if each.topics)
    if not found:
        raise UsageError(f"{admin_url} has no persistent topic in the namespaces that were asked")
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


def chosen(
    shapes: Sequence[NamespaceShape], names: Sequence[str], source: object
) -> tuple[NamespaceShape, ...]:
    """Return the namespaces of these names; of none, all.

    Raises:
        UsageError: One of them is not there.
    """
    known = {each.name: each for each in shapes}
    missing = [name for name in names if name not in known]
    if missing:
        largest = sorted(shapes, key=lambda each: -each.topics)[:_NAMES_SHOWN]
        raise UsageError(
            f"--namespace {missing[0][:100]} has no persistent topic in {source}; its largest "
            f"namespaces are: {', '.join(each.name for each in largest)}"
        )
    return tuple(known[name] for name in names) if names else tuple(shapes)

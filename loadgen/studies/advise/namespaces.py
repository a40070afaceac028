"""The namespaces for which limits are advised: from a file, a running cluster or a scenario."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from loadgen.errors import UsageError
from loadgen.studies.advise.question import NamespaceShape
from loadgen.topics.listings import take_snapshot
from loadgen.topics.reading import read_own_topics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadgen.documents.model import Topics


def shapes_of_topics(topics: Topics) -> tuple[NamespaceShape, ...]:
    """Return the size of each namespace that a scenario generates topics for.

    Raises:
        UsageError: The scenario's topics are in a file or on a running server.
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
    """Return the size of each named namespace in a list of topics; if none is named, of all.

    Raises:
        UsageError: The list cannot be read, or has no persistent topic at all or in a namespace.
    """
    if not path.exists():
        raise UsageError(
            f"--topics {path} does not exist; save your topics with: pulsar-admin topics list "
            "my-tenant/my-namespace > topics.txt"
        )
    sizes = read_own_topics(path, names)
    return tuple(NamespaceShape(name, each.topics, each.name_bytes) for name, each in sizes.items())


def shapes_of_cluster(admin_url: str, names: Sequence[str]) -> tuple[NamespaceShape, ...]:
    """Return the size of each named namespace in a running cluster; if none is named, of all.

    Args:
        admin_url: ``http://host:port`` of a broker's web port.
        names: The names of namespaces; empty for all namespaces.

    Raises:
        LoadgenError: The cluster cannot be reached, refuses a request, or has no topic.
        UsageError: A named namespace has no persistent topic.
    """
    with TemporaryDirectory(prefix="loadgen-") as folder:
        taken = Path(folder) / "topics"
        asyncio.run(take_snapshot(admin_url, taken, lambda count: None, namespaces=names))
        found = shapes_of_file(taken, ())
    missing = set(names) - {each.name for each in found}
    if missing:
        where = f"--namespace {min(missing)[:100]}"
        raise UsageError(f"{admin_url} has no persistent topic in {where}")
    return found

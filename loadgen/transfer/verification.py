"""A server's listings compared with the manifest of what was loaded into it.

What a Floodgate imported is compared whole. Of what was created by REST persistent topics are: of
others a Pulsar lists only those that are in use.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.dataset as ds

from client.admin.errors import AdminRefusedError
from loadgen.errors import ExitCode, LoadgenError
from loadgen.transfer.retries import Retries
from proto.names import NON_PERSISTENT, PERSISTENT, NamespaceName
from proto.topic_hash import topics_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from client.admin.pulsar_admin import PulsarAdmin
    from loadgen.corpus.corpus import Corpus

LISTINGS_AT_ONCE = 4
"""Each holds all names of a namespace."""
_NOT_FOUND = 404
_SHOWN = 3


@dataclass
class Verification:
    """The result of the listings.

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


async def verify(
    admin: PulsarAdmin,
    corpus: Corpus,
    on_namespaces_done: Callable[[int], None],
    domains: Sequence[str] = (PERSISTENT,),
) -> Verification:
    """List every namespace of a corpus and compare its topics of ``domains`` with the manifest.

    Raises:
        AdminError: The server cannot be asked.
    """
    found = Verification()
    waiting = iter(corpus.manifest.namespaces.items())

    async def ask() -> None:
        for name, entry in waiting:
            names = await Retries().call(lambda name=name: _listed(admin, name, domains))  # type: ignore[misc]
            expected = entry if NON_PERSISTENT in domains else entry.asked
            if (len(names), topics_hash(names)) == (expected.topics, expected.hash):
                found.topics += len(names)
            else:
                found.wrong.append(_difference(corpus, name, names, domains))
            found.left_out += entry.topics - expected.topics
            found.namespaces += 1
            on_namespaces_done(found.namespaces)

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(LISTINGS_AT_ONCE):
                tasks.create_task(ask())
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
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

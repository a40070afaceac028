"""Creates topics through Pulsar's admin REST API, as ``pulsar-admin`` does, many at a time.

What exists already (409) is as good as created. The mutable state is the counters of the loader.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING

from client.admin.errors import (
    AdminError,
    AdminRefusedError,
    AdminTimeoutError,
    AdminUnreachableError,
)
from loadgen.errors import LoadgenError
from loadgen.transfer.low_water import LowWater
from loadgen.transfer.retries import Retries

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator
    from typing import Any, TypeAlias

    from client.admin.pulsar_admin import PulsarAdmin
    from loadgen.corpus.source import TopicToCreate
    from proto.names import NamespaceName

    Numbered: TypeAlias = tuple[int, TopicToCreate]

_EXISTS = 409


class TopicLoader:
    """Creates topics and, before them, their tenants and namespaces.

    At most ``concurrency`` calls are under way, and as many topics wait in a queue.
    """

    def __init__(
        self, admin: PulsarAdmin, concurrency: int, retries: Retries | None = None
    ) -> None:
        self._admin = admin
        self._concurrency = concurrency
        self._calls = asyncio.Semaphore(concurrency)
        self._tenants: set[str] = set()
        self.retries = retries or Retries()
        self.namespaces: set[NamespaceName] = set()
        self.names = 0
        """Listed names created or found: a partitioned topic counts its partitions."""
        self.existing = 0
        """Topics (not names) that existed already."""

    async def load(
        self,
        topics: Iterable[TopicToCreate],
        on_names_created: Callable[[int], None],
        skip: int = 0,
        on_topics_done: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Create all topics; the first error ends it.

        Args:
            topics: In an order that is the same each time.
            on_names_created: Told how many names there are.
            skip: So many topics, from the first on, are known to be there.
            on_topics_done: Told how many topics, from the first on, are there without a gap.

        Raises:
            LoadgenError: The server refused something, or cannot be reached.
        """
        waiting: asyncio.Queue[Numbered | None] = asyncio.Queue(self._concurrency)
        done = LowWater(skip, on_topics_done)
        errors: list[LoadgenError] = []
        numbered = enumerate(topics)
        for _, topic in islice(numbered, skip):
            self.names += max(topic.partitions, 1)
            self.namespaces.add(topic.name.namespace)
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(self._concurrency):
                    tasks.create_task(self._create_waiting(waiting, on_names_created, done))
                prepared: set[NamespaceName] = set()
                for number, topic in numbered:
                    if topic.name.namespace not in prepared:
                        await self._prepare(topic.name.namespace)
                        prepared.add(topic.name.namespace)
                    await waiting.put((number, topic))
                for _ in range(self._concurrency):
                    await waiting.put(None)
        except* LoadgenError as group:
            errors += [error for error in group.exceptions if isinstance(error, LoadgenError)]
        if errors:
            raise errors[0]

    async def _create_waiting(
        self,
        waiting: asyncio.Queue[Numbered | None],
        on_names_created: Callable[[int], None],
        done: LowWater,
    ) -> None:
        """Create what waits in the queue, until it ends with None."""
        while (numbered := await waiting.get()) is not None:
            number, topic = numbered
            created = await self._create(f"topic {topic.name}", self._create_topic, topic)
            self.existing += not created
            self.names += max(topic.partitions, 1)
            done.add(number)
            on_names_created(self.names)

    async def _create_topic(self, topic: TopicToCreate) -> None:
        topics = self._admin.topics
        if topic.partitions:
            await topics.create_partitioned(topic.name, topic.partitions, topic.properties)
        else:
            await topics.create(topic.name, topic.properties)

    async def _prepare(self, namespace: NamespaceName) -> None:
        """Create a namespace, and its tenant."""
        tenant = namespace.tenant
        if tenant not in self._tenants:
            await self._create(f"tenant {tenant}", self._admin.tenants.create, tenant)
            self._tenants.add(tenant)
        await self._create(f"namespace {namespace}", self._admin.namespaces.create, namespace)
        self.namespaces.add(namespace)

    async def _create(
        self, what: str, call: Callable[..., Coroutine[Any, Any, None]], *arguments: object
    ) -> bool:
        """Create something by a call of the admin client; false if it existed."""
        async with self._calls:
            with admin_errors(f"Creating {what}"):
                try:
                    await self.retries.call(lambda: call(*arguments))
                except AdminRefusedError as error:
                    if error.status != _EXISTS:
                        raise
                    return False
        return True


@contextmanager
def admin_errors(what: str, where: str = "the broker") -> Iterator[None]:
    """Turn an error of the admin client into one sentence on what was tried, and where.

    Raises:
        LoadgenError: There was one.
    """
    try:
        yield
    except AdminRefusedError as error:
        raise LoadgenError(
            f"{what} at {where} was refused with HTTP {error.status}: {error.reason}"
        ) from error
    except AdminTimeoutError as error:
        raise LoadgenError(f"{what} took too long; is the server busy?") from error
    except AdminUnreachableError as error:
        raise LoadgenError(f"{error}; is the server running?") from error
    except AdminError as error:
        raise LoadgenError(str(error)) from error

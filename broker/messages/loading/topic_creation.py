"""Creation of topics for clients, and a record of new topics that no client has used yet."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb
from broker.bundles import bundle_of
from broker.errors import Refusal, RefusedError
from broker.messages.errors import no_partitioned_topic, partitioned_base, topic_not_found
from broker.stores.changes import StoreError
from broker.topics.rules import partitions_around
from proto.names import NamespaceName, TopicName, is_transaction_topic, namespace_of
from server.connection.request_errors import RequestError
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from broker.messages.topic import PersistentTopic
    from broker.stores.store import MetadataStore
    from broker.topics.rules import TopicRules
    from broker.topics.service import TopicService
    from limiter.clock import Clock

_SYSTEM = NamespaceName.parse("pulsar/system")


class TopicCreation:
    """The check that a topic exists, and the creation of missing topics for clients.

    Source: upstream BrokerService.getTopic, isAllowAutoTopicCreationAsync.

    Args:
        store: The names of topics.
        topics: Creates topics.
        rules: Returns the operator's current rules for a namespace.
        owns: Returns True while this broker serves a topic (see BundleOwnership).
        address: Returns host and port of the admin API, named in refusals.
    """

    def __init__(
        self,
        store: MetadataStore,
        topics: TopicService,
        rules: Callable[[NamespaceName], TopicRules],
        owns: Callable[[TopicName], bool],
        address: Callable[[], str],
    ) -> None:
        self._store = store
        self._topics = topics
        self._rules = rules
        self._owns = owns
        self._address = address

    async def ensure(self, topic: TopicName, *, create: bool) -> bool:
        """Make sure that a topic exists; return True if it is newly created.

        Args:
            topic: A topic, or one partition.
            create: Create a missing topic, if the operator allows auto-creation.

        Raises:
            RequestError: Another broker serves the topic, or it is missing or may not be created.
        """
        try:
            return await self._ensure(topic, create=create)
        except StoreError as error:
            raise RequestError(pb.MetadataError, str(error)) from None

    async def _ensure(self, topic: TopicName, *, create: bool) -> bool:
        snapshot = await self._store.snapshot(topic.namespace)
        if snapshot is None or not self._owns(topic):
            raise await self._not_served(topic)
        name = str(topic)
        if name in snapshot.partitioned:
            raise partitioned_base(name)
        if snapshot.holds(name.encode()):
            return False
        if topic.namespace == _SYSTEM or topic.partition_index < 0:
            _check_transaction_topic(name)
        count = partitions_around(topic, snapshot)
        # A missing partition of an existing partitioned topic is always created.
        lacks = count is not None and topic.partition_index < count
        if not create or not (lacks or self._rules(topic.namespace).auto_creation):
            raise topic_not_found(name)
        if topic.partition_index >= 0 and not lacks:
            raise no_partitioned_topic(name) if count is None else topic_not_found(name)
        return await self._create(topic)

    async def _not_served(self, topic: TopicName) -> RequestError:
        policies = await self._store.policies(topic.namespace)
        hashes = bundle_of(str(topic).encode(), 1 if policies is None else policies.bundles)
        text = (
            f"Namespace bundle ({topic.namespace}/{hashes}) for topic ({topic}) not served by this "
            f"instance:{self._address()}. Please redo the lookup."
        )
        return RequestError(pb.ServiceNotReady, text)

    async def _create(self, topic: TopicName) -> bool:
        try:
            await self._topics.create_for_client(topic)
        except RefusedError as error:
            snapshot = await self._store.snapshot(topic.namespace)
            if snapshot is not None and snapshot.holds(str(topic).encode()):
                return False  # Another client was faster.
            if error.refusal is Refusal.NOT_FOUND:
                raise await self._not_served(topic) from None
            raise RequestError(pb.NotAllowedError, error.reason) from None
        return True


def _check_transaction_topic(name: str) -> None:
    if is_transaction_topic(name):
        text = f"Can not create transaction system topic {name}"
        raise RequestError(pb.NotAllowedError, text)


MOST_TOPICS = 20_000
"""The largest number of remembered topics, and of remembered partitioned topics."""


class MadeTopics:
    """The topics created since the broker started that no client has used yet.

    Bound: MOST_TOPICS topics, and as many partitioned topics. Above it, the oldest topic is
    forgotten, and therefore never deleted as unused.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unused_since: dict[str, float] = {}
        self._partitioned: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._unused_since) + len(self._partitioned)

    def add(self, name: TopicName) -> None:
        """Remember a topic that no client has used since its creation."""
        _bounded(self._unused_since)
        self._unused_since[str(name)] = self._clock.now()

    def add_partitioned(self, name: TopicName) -> None:
        """Remember a partitioned topic, whose partitions may be deleted when unused."""
        _bounded(self._partitioned)
        self._partitioned[str(name)] = None

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, TopicName):
            return False
        return str(name) in self._unused_since or str(name.partitioned_name) in self._partitioned

    def loaded(self, name: TopicName) -> None:
        """Forget a topic, because it is loaded for a client now."""
        self._unused_since.pop(str(name), None)

    async def deleted(self, name: TopicName) -> None:
        """Forget a topic, because it was deleted."""
        self._unused_since.pop(str(name), None)
        self._partitioned.pop(str(name), None)

    def clear(self) -> None:
        """Forget all remembered topics."""
        self._unused_since.clear()
        self._partitioned.clear()

    async def forget(self, namespaces: Iterable[NamespaceName]) -> None:
        """Forget the topics of deleted namespaces."""
        gone = frozenset(map(str, namespaces))
        for noted in (self._unused_since, self._partitioned):
            async for name in in_turns(tuple(noted)):
                if namespace_of(name) in gone:
                    noted.pop(name, None)

    def unused(self) -> Iterator[tuple[TopicName, float]]:
        """Yield each topic not used since its creation, and the clock's time of its creation."""
        for name, since in tuple(self._unused_since.items()):
            if name in self._unused_since:
                yield TopicName.parse(name), since


def _bounded(noted: dict[str, float] | dict[str, None]) -> None:
    if len(noted) >= MOST_TOPICS:
        del noted[next(iter(noted))]


class _Growth(NamedTuple):
    topic: TopicName
    first: int
    given: Mapping[str, Mapping[str, str]]


class GrowingTopics:
    """Creates subscriptions on new partitions, before any client connects to them.

    A consumer that discovers a new partition some time after its creation therefore misses no
    messages.
    """

    def __init__(self) -> None:
        self._growths: list[_Growth] = []

    @contextmanager
    def growing(
        self, topic: TopicName, first: int, given: Mapping[str, Mapping[str, str]]
    ) -> Iterator[None]:
        """During a ``with`` block, create missing subscriptions on each newly loaded partition.

        Args:
            topic: The partitioned topic.
            first: The index of the first new partition.
            given: The properties of each subscription to create, by subscription name.
        """
        growth = _Growth(topic, first, given)
        self._growths.append(growth)
        try:
            yield
        finally:
            self._growths.remove(growth)

    def give(self, topic: PersistentTopic) -> None:
        """If a loaded topic is a new partition, create its missing subscriptions."""
        name = topic.name
        for growth in self._growths:
            if name.partition_index < growth.first or name.partitioned_name != growth.topic:
                continue
            for subscription, properties in growth.given.items():
                if topic.subscriptions.get(subscription) is None:
                    # More than the topic may have are left out (recorded).
                    with suppress(RequestError):
                        topic.subscriptions.create(
                            subscription, earliest=True, properties=properties
                        )

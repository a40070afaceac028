"""Rules for finding, creating or refusing a requested topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import proto.PulsarApi_pb2 as pb
from broker.bundles import bundle_of
from broker.errors import Refusal, RefusedError
from broker.messages.errors import (
    no_partitioned_topic,
    not_served_here,
    partitioned_base,
    topic_not_found,
)
from broker.stores.changes import StoreError
from broker.topics.rules import partitions_around
from proto.names import NamespaceName, is_transaction_topic
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.stores.store import MetadataStore
    from broker.topics.rules import TopicRules
    from broker.topics.service import TopicService
    from proto.names import TopicName

_SYSTEM = NamespaceName.parse("pulsar/system")


class CreationRules(NamedTuple):
    """The rules of one broker.

    Attributes:
        topics: The operator's current rules for a namespace.
        owns: Returns True while this broker serves a topic (see BundleOwnership).
        address: Returns host and port of the admin API, named in refusals.
    """

    topics: Callable[[NamespaceName], TopicRules]
    owns: Callable[[TopicName], bool]
    address: Callable[[], str]


class TopicCreation:
    """Checks the existence of topics, and creates topics for their first client.

    Source: upstream BrokerService.getTopic, isAllowAutoTopicCreationAsync.
    """

    def __init__(self, store: MetadataStore, topics: TopicService, rules: CreationRules) -> None:
        self._store = store
        self._topics = topics
        self._rules = rules

    async def ensure(self, topic: TopicName, *, create: bool) -> bool:
        """Return True for a newly created topic, False for an existing topic.

        Args:
            topic: A topic, or one partition.
            create: Create a missing topic, if the operator allows auto-creation.

        Raises:
            RequestError: Not served here, missing, or not creatable.
        """
        try:
            return await self._ensure(topic, create=create)
        except StoreError as error:
            raise RequestError(pb.MetadataError, str(error)) from None

    async def _ensure(self, topic: TopicName, *, create: bool) -> bool:
        snapshot = await self._store.snapshot(topic.namespace)
        if snapshot is None or not self._rules.owns(topic):
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
        if not create or not (lacks or self._rules.topics(topic.namespace).auto_creation):
            raise topic_not_found(name)
        if topic.partition_index >= 0 and not lacks:
            raise no_partitioned_topic(name) if count is None else topic_not_found(name)
        return await self._create(topic)

    async def _not_served(self, topic: TopicName) -> RequestError:
        policies = await self._store.policies(topic.namespace)
        hashes = bundle_of(str(topic).encode(), 1 if policies is None else policies.bundles)
        bundle = f"{topic.namespace}/{hashes}"
        return not_served_here(str(topic), bundle, self._rules.address())

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

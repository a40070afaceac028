"""Answers LOOKUP and PARTITIONED_METADATA: who serves a topic, and how many partitions it has."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.errors import Refusal, RefusedError
from broker.stores.changes import StoreError
from proto.names import InvalidNameError, TopicName, is_blank, without_partition
from server.connection.request_errors import RequestError, UnansweredRequestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.stores.store import MetadataStore, NamespaceSnapshot
    from broker.topics.service import TopicService

NAMESPACE_NOT_FOUND = "Namespace not found"


class LookupHandler:
    """Looks topics up in the store; this broker serves them all.

    Args:
        store: Where the topics are.
        broker_service_url: What clients are told to connect to.
        topics: Makes a topic that is missing, where that is allowed.
        as_shipped: Profile pulsar.
    """

    def __init__(
        self,
        store: MetadataStore,
        broker_service_url: Callable[[], str],
        topics: TopicService,
        *,
        as_shipped: bool = False,
    ) -> None:
        self._store = store
        self._url = broker_service_url
        self._topics = topics
        self._as_shipped = as_shipped

    async def lookup(self, request: pb.CommandLookupTopic) -> pb.CommandLookupTopicResponse:
        """Return which broker serves a topic; it need not exist, its namespace must.

        Raises:
            RequestError: InvalidTopicName, TopicNotFound, or an unknown listener.
        """
        topic = _parse(request.topic)
        if nameless := _partition_of_nothing(request.topic, topic):
            code = pb.ServiceNotReady if self._as_shipped else pb.InvalidTopicName
            raise RequestError(code, nameless)
        await self._namespace_of(topic)
        listener = request.advertised_listener_name.strip()
        if listener:
            text = f"the broker do not have {listener} listener"
            raise RequestError(pb.ServiceNotReady, text)
        url = self._url()
        return pb.CommandLookupTopicResponse(
            request_id=request.request_id,
            response=pb.CommandLookupTopicResponse.Connect,
            brokerServiceUrl=url,
            authoritative=True,
            # Upstream sets it where the advertised address is a loopback one.
            proxy_through_service_url=_is_loopback(url),
        )

    async def partitions(
        self, request: pb.CommandPartitionedTopicMetadata
    ) -> pb.CommandPartitionedTopicMetadataResponse:
        """Return how many partitions a topic has, 0 for none.

        Raises:
            RequestError: InvalidTopicName, or TopicNotFound.
            UnansweredRequestError: As shipped, nothing is answered.
        """
        topic, create = _parse(request.topic), request.metadata_auto_creation_enabled
        if nameless := _partition_of_nothing(request.topic, topic):
            if self._as_shipped:
                raise UnansweredRequestError(nameless)
            raise RequestError(pb.InvalidTopicName, nameless)
        snapshot = await self._namespace_of(topic, reason=NAMESPACE_NOT_FOUND if create else "")
        count = snapshot.partitioned.get(str(topic), 0)
        if not count and not snapshot.contains(topic):
            # A partitioned topic has no partitions but its own, and nobody's question makes more.
            create = create and str(topic.partitioned_name) not in snapshot.partitioned
            count = await self._missing(topic, create=create)
        return pb.CommandPartitionedTopicMetadataResponse(
            request_id=request.request_id,
            response=pb.CommandPartitionedTopicMetadataResponse.Success,
            partitions=count,
        )

    async def _namespace_of(
        self, topic: TopicName, reason: str = NAMESPACE_NOT_FOUND
    ) -> NamespaceSnapshot:
        try:
            snapshot = await self._store.snapshot(topic.namespace)
        except StoreError as error:
            raise RequestError(pb.MetadataError, str(error)) from None
        if snapshot is None:
            raise RequestError(pb.TopicNotFound, reason)
        return snapshot

    async def _missing(self, topic: TopicName, *, create: bool) -> int:
        """Make a missing topic if it is partitioned; others come with their first producer."""
        try:
            return await self._topics.partitions(topic, create=create)
        except RefusedError as error:
            if error.refusal is Refusal.NOT_FOUND:
                raise RequestError(pb.TopicNotFound, "") from None
            raise RequestError(pb.NotAllowedError, error.reason) from None
        except StoreError as error:
            raise RequestError(pb.MetadataError, str(error)) from None


def _parse(text: str) -> TopicName:
    try:
        return TopicName.parse(text)
    except InvalidNameError as error:
        raise RequestError(pb.InvalidTopicName, f"Invalid topic name: {error}") from None


def _partition_of_nothing(text: str, topic: TopicName) -> str:
    """Return what is wrong with a name that is but ``-partition-0``; else nothing."""
    if not is_blank(topic.partitioned_name.local_name):
        return ""
    base = without_partition(text if "://" in text else str(topic))
    return f"Invalid topic name: {base}. Topic local name must not be blank."


def _is_loopback(url: str) -> bool:
    host = url.removeprefix("pulsar://").rsplit(":", 1)[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

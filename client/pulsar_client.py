"""A client for the lookups, partitions and topic lists of a Pulsar cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import proto.PulsarApi_pb2 as pb
from client.connect_options import OPERATION_TIMEOUT_SECONDS, ConnectOptions
from client.errors import ConnectError, ServerResponseError
from client.pool import ConnectionPool, server_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from client.cnx import ClientCnx
    from limiter.clock import Clock

PERSISTENT_TOPICS = pb.CommandGetTopicsOfNamespace.PERSISTENT
MAX_REDIRECTS = 20
"""Redirects a lookup follows (upstream: maxLookupRedirects)."""


@dataclass(frozen=True, slots=True)
class LookupResult:
    """The place where a topic is served.

    Attributes:
        broker_service_url: The broker, ``pulsar://host:port``.
        proxy_through_service_url: Whether to connect to the service URL and name the broker.
    """

    broker_service_url: str
    proxy_through_service_url: bool


@dataclass(frozen=True, slots=True)
class NamespaceTopics:
    """A namespace's topic list.

    Attributes:
        topics: Full names; empty when the caller's hash was right.
        topics_hash: Pulsar's hash of the list.
        filtered: Whether the broker applied the pattern.
        changed: False when the caller's hash was right.
    """

    topics: tuple[str, ...]
    topics_hash: str
    filtered: bool
    changed: bool


class PulsarClient:
    """A client of one cluster.

    Example:
        async with PulsarClient("pulsar://127.0.0.1:6650") as client:
            listing = await client.topics_of_namespace("public/default")

    Args:
        service_url: ``pulsar://host:port`` of a broker or proxy.
        operation_timeout_seconds: How long a request may take.
        clock: Where time comes from.
    """

    def __init__(
        self,
        service_url: str,
        operation_timeout_seconds: float = OPERATION_TIMEOUT_SECONDS,
        clock: Clock | None = None,
    ) -> None:
        self._address = server_address(service_url)
        options = ConnectOptions(operation_timeout_seconds=operation_timeout_seconds)
        self._pool = ConnectionPool(options, clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.close()

    async def connect(self) -> ClientCnx:
        """Return the ready connection to the service URL.

        Raises:
            ConnectError: It cannot be reached.
        """
        return await self._pool.get(self._address)

    async def partitions(self, topic: str, *, auto_create: bool = True) -> int:
        """Return how many partitions a topic has; 0 for one that is not partitioned.

        Raises:
            ServerResponseError: TopicNotFound, InvalidTopicName and so on.
            The errors of :meth:`client.cnx.ClientCnx.request`.
        """
        cnx = await self.connect()
        answer = await cnx.request(
            lambda request_id: pb.BaseCommand(
                type=pb.BaseCommand.PARTITIONED_METADATA,
                partitionMetadata=pb.CommandPartitionedTopicMetadata(
                    topic=topic, request_id=request_id, metadata_auto_creation_enabled=auto_create
                ),
            )
        )
        if answer.type == pb.BaseCommand.LOOKUP_RESPONSE:
            failure = answer.lookupTopicResponse
            raise ServerResponseError(failure.error, failure.message)
        response = answer.partitionMetadataResponse
        if response.response == pb.CommandPartitionedTopicMetadataResponse.Failed:
            raise ServerResponseError(response.error, response.message)
        return response.partitions

    async def lookup(self, topic: str) -> LookupResult:
        """Return which broker serves a topic, following redirects.

        Raises:
            ServerResponseError: The lookup failed.
            ConnectError: More than MAX_REDIRECTS redirects, or a broker cannot be reached.
            The errors of :meth:`client.cnx.ClientCnx.request`.
        """
        address, authoritative = self._address, False
        for _ in range(MAX_REDIRECTS + 1):
            cnx = await self._pool.get(address)
            response = await lookup_once(cnx, topic, authoritative=authoritative)
            if response.response == pb.CommandLookupTopicResponse.Connect:
                return LookupResult(response.brokerServiceUrl, response.proxy_through_service_url)
            address = server_address(response.brokerServiceUrl)
            authoritative = response.authoritative
        raise ConnectError(f"the lookup of {topic} was redirected more than {MAX_REDIRECTS} times")

    async def topics_of_namespace(
        self,
        namespace: str,
        mode: pb.CommandGetTopicsOfNamespace.Mode.ValueType = PERSISTENT_TOPICS,
        pattern: str | None = None,
        topics_hash: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> NamespaceTopics:
        """Return the topics of a namespace.

        Args:
            namespace: ``tenant/namespace``.
            mode: PERSISTENT, NON_PERSISTENT or ALL.
            pattern: Regular expression the broker may apply (see NamespaceTopics.filtered).
            topics_hash: Hash of the list the caller has; an unchanged list comes back empty.
            properties: PIP-452's client properties, for the broker's plug-in.

        Raises:
            ServerResponseError: The broker refused.
            RemoteProtocolError: The broker's answer cannot be read.
            The errors of :meth:`client.cnx.ClientCnx.request`.
        """
        request = topics_request(namespace, mode, pattern, topics_hash, properties)
        cnx = await self.connect()
        answer = await cnx.topics_raw(request)
        response = answer.decoded()
        return NamespaceTopics(
            tuple(response.topics), response.topics_hash, response.filtered, response.changed
        )


def topics_request(
    namespace: str,
    mode: pb.CommandGetTopicsOfNamespace.Mode.ValueType,
    pattern: str | None,
    topics_hash: str | None,
    properties: Mapping[str, str] | None,
) -> pb.CommandGetTopicsOfNamespace:
    """Build a listing request without a request id of its own."""
    request = pb.CommandGetTopicsOfNamespace(request_id=0, namespace=namespace, mode=mode)
    if pattern is not None:
        request.topics_pattern = pattern
    if topics_hash is not None:
        request.topics_hash = topics_hash
    for key, value in (properties or {}).items():
        request.properties.add(key=key, value=value)
    return request


async def lookup_once(
    cnx: ClientCnx, topic: str, *, authoritative: bool, listener_name: str | None = None
) -> pb.CommandLookupTopicResponse:
    """Ask one server for a topic; a redirect is returned, not followed.

    Raises:
        ServerResponseError: The lookup failed.
        The errors of :meth:`client.cnx.ClientCnx.request`.
    """

    def build(request_id: int) -> pb.BaseCommand:
        lookup = pb.CommandLookupTopic(
            topic=topic, request_id=request_id, authoritative=authoritative
        )
        if listener_name:
            lookup.advertised_listener_name = listener_name
        return pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=lookup)

    response = (await cnx.request(build)).lookupTopicResponse
    if response.response == pb.CommandLookupTopicResponse.Failed:
        raise ServerResponseError(response.error, response.message)
    return response

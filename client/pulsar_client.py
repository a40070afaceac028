"""A client that looks up brokers, partitions and topic lists of a Pulsar cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import proto.PulsarApi_pb2 as pb
from client.connection.connect_options import OPERATION_TIMEOUT_SECONDS, ConnectOptions
from client.connection.pool import ConnectionPool
from client.connection.service_url import parse_service_url
from client.exceptions import ConnectError, server_response_error
from client.patience import Patience
from limiter.clock import Clock, LoopClock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from client.connection.cnx import ClientCnx

PERSISTENT_TOPICS = pb.CommandGetTopicsOfNamespace.PERSISTENT
MAX_REDIRECTS = 20
"""Maximum number of redirects that a lookup follows (upstream: maxLookupRedirects)."""


@dataclass(frozen=True, slots=True)
class LookupResult:
    """The broker that serves a topic, as found by a lookup.

    Attributes:
        broker_service_url: Address of the broker, ``pulsar://host:port``; ``pulsar+ssl://`` for a
            TLS client.
        proxy_through_service_url: Whether to connect to the service URL, and there to name the
            broker.
    """

    broker_service_url: str
    proxy_through_service_url: bool


@dataclass(frozen=True, slots=True)
class NamespaceTopics:
    """The topics of a namespace, as listed by a broker.

    Attributes:
        topics: Full names of the topics; empty if the list is unchanged.
        topics_hash: Pulsar's hash of the list.
        filtered: Whether the broker applied the pattern.
        changed: False if the list is unchanged since the hash that the caller gave.
    """

    topics: tuple[str, ...]
    topics_hash: str
    filtered: bool
    changed: bool


class PulsarClient:
    """A client of a Pulsar cluster for lookups and topic lists, the base class of Client.

    Example:
        async with PulsarClient("pulsar://127.0.0.1:6650") as client:
            listing = await client.topics_of_namespace("public/default")

    Args:
        service_url: ``pulsar://host:port`` of a broker or proxy, or ``pulsar+ssl://``; several
            comma-separated hosts are tried one after another.
        operation_timeout_seconds: Timeout of a request, unless ``options`` has another one.
        clock: The source of time.
        options: Connection options.
        listener_name: Name of the brokers' advertised listener whose addresses lookups should
            return; None for their default.

    Attributes:
        clock: The source of time.
        patience: Retries of the operations of producers and consumers.

    Raises:
        ConnectError: The service URL is invalid.
    """

    def __init__(
        self,
        service_url: str,
        operation_timeout_seconds: float = OPERATION_TIMEOUT_SECONDS,
        clock: Clock | None = None,
        *,
        options: ConnectOptions | None = None,
        listener_name: str | None = None,
    ) -> None:
        self._service = parse_service_url(service_url)
        self._service_url = service_url
        self._turn = 0
        self._proxied = False  # From the last lookup; a CLOSE command does not say.
        self._listener_name = listener_name
        self.clock: Clock = clock or LoopClock()
        if options is None:
            options = ConnectOptions(operation_timeout_seconds=operation_timeout_seconds)
        self._options = options
        self.patience = Patience(self.clock)
        self._pool = ConnectionPool(self._options, self.clock, self.patience.connection_opened)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._service_url:.200}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections of the client."""
        await self._pool.close()

    async def connect(self, target: str | None = None) -> ClientCnx:
        """Return a connection to the service URL with a completed handshake.

        Of several addresses, the one that answered last is tried first.

        Args:
            target: The broker, ``host:port``, behind a proxy; not announced to the broker itself.
                (Brokers on a loopback address require connections through the service URL.)

        Raises:
            ConnectError: No address can be reached.
        """
        for _ in self._service.addresses[1:]:
            turn = self._turn
            try:
                return await self._connect(turn, target)
            except ConnectError:
                # Concurrent failures advance the turn once.
                self._turn = max(self._turn, turn + 1)
        return await self._connect(self._turn, target)

    async def _connect(self, turn: int, target: str | None) -> ClientCnx:
        addresses, tls = self._service
        address = addresses[turn % len(addresses)]
        through = None if target == _target(address) else target
        return await self._pool.get(address, tls=tls, target=through)

    async def connection_of(self, topic: str) -> ClientCnx:
        """Return a connection to the broker that serves a topic, directly or through a proxy.

        Raises:
            The errors of :meth:`lookup` and :meth:`connect`.
        """
        return await self.connection_to(await self.lookup(topic))

    async def connection_to(self, found: LookupResult) -> ClientCnx:
        """Return a connection to the broker that a lookup has found.

        Raises:
            ConnectError: The broker is unreachable, or lacks the service URL's TLS.
        """
        (address, *_), tls = parse_service_url(found.broker_service_url)
        if found.proxy_through_service_url:
            return await self.connect(target=_target(address))
        if self._service.tls and not tls:
            raise ConnectError(
                f"{found.broker_service_url:.200} is without TLS, which the service URL asks for: "
                "correct the addresses that the brokers advertise"
            )
        return await self._pool.get(address, tls=tls)

    async def connection_by_url(self, url: str) -> ClientCnx:
        """Return a connection to the broker that a CLOSE command names as the next one.

        Raises:
            The errors of :meth:`connection_to`.
        """
        return await self.connection_to(LookupResult(url, self._proxied))

    async def partitions(self, topic: str, *, auto_create: bool = True) -> int:
        """Return the number of a topic's partitions; 0 for an unpartitioned topic.

        Raises:
            ServerResponseError: TopicNotFound, InvalidTopicName and so on.
            The errors of :meth:`client.connection.cnx.ClientCnx.request`.
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
            raise server_response_error(failure.error, failure.message)
        response = answer.partitionMetadataResponse
        if response.response == pb.CommandPartitionedTopicMetadataResponse.Failed:
            raise server_response_error(response.error, response.message)
        return response.partitions

    async def lookup(self, topic: str) -> LookupResult:
        """Return the broker that serves a topic, following redirects.

        Raises:
            ServerResponseError: The lookup failed.
            ConnectError: More than MAX_REDIRECTS redirects, or a broker is unreachable.
            The errors of :meth:`client.connection.cnx.ClientCnx.request`.
        """
        cnx, authoritative = await self.connect(), False
        for _ in range(MAX_REDIRECTS + 1):
            response = await lookup_once(
                cnx, topic, authoritative=authoritative, listener_name=self._listener_name
            )
            found = self._found(topic, response)
            if response.response == pb.CommandLookupTopicResponse.Connect:
                self._proxied = found.proxy_through_service_url
                return found
            cnx, authoritative = await self.connection_to(found), response.authoritative
        raise ConnectError(f"the lookup of {topic} was redirected more than {MAX_REDIRECTS} times")

    def _found(self, topic: str, response: pb.CommandLookupTopicResponse) -> LookupResult:
        """Return the broker named in a lookup response; a TLS client gets its TLS address.

        Behind a proxy the URL is only the broker's name: the proxy chooses the protocol.
        """
        proxied = response.proxy_through_service_url
        url = response.brokerServiceUrlTls if self._service.tls else response.brokerServiceUrl
        if not url and proxied:
            url = response.brokerServiceUrl
        if not url:
            kind = "address for TLS" if self._service.tls else "address"
            raise ConnectError(
                f"the broker of {topic} names no {kind}: correct the addresses it advertises"
            )
        return LookupResult(url, proxied)

    async def topics_of_namespace(
        self,
        namespace: str,
        mode: pb.CommandGetTopicsOfNamespace.Mode.ValueType = PERSISTENT_TOPICS,
        pattern: str | None = None,
        topics_hash: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> NamespaceTopics:
        """Return the topics of a namespace, as listed by the broker.

        Args:
            namespace: ``tenant/namespace``.
            mode: PERSISTENT, NON_PERSISTENT or ALL.
            pattern: Regular expression that the broker may apply; NamespaceTopics.filtered says
                whether it did.
            topics_hash: Hash of the list that the caller has. If the list is unchanged, the result
                has no topics.
            properties: Properties for the broker's listing plug-in (PIP-452).

        Raises:
            ServerResponseError: The broker refused.
            RemoteProtocolError: The broker's answer is unreadable.
            The errors of :meth:`client.connection.cnx.ClientCnx.request`.
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
    """Return a request for a topic list, still without its request id."""
    request = pb.CommandGetTopicsOfNamespace(request_id=0, namespace=namespace, mode=mode)
    if pattern is not None:
        request.topics_pattern = pattern
    if topics_hash is not None:
        request.topics_hash = topics_hash
    for key, value in (properties or {}).items():
        request.properties.add(key=key, value=value)
    return request


def _target(address: tuple[str, int]) -> str:
    """Return a broker's address as ``host:port``, which names the broker to a proxy."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def lookup_once(
    cnx: ClientCnx, topic: str, *, authoritative: bool, listener_name: str | None = None
) -> pb.CommandLookupTopicResponse:
    """Look up a topic at a single server; return a redirect without following it.

    Raises:
        ServerResponseError: The lookup failed.
        The errors of :meth:`client.connection.cnx.ClientCnx.request`.
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
        raise server_response_error(response.error, response.message)
    return response

"""Forwarding of LOOKUP, PARTITIONED_METADATA and GET_SCHEMA to brokers.

The requests are forwarded under the proxy's own request ids.

Source: upstream LookupProxyHandler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.connection.service_url import server_address
from client.exceptions import ConnectError, PulsarException, ServerResponseError
from client.pulsar_client import lookup_once
from proto.errors import RemoteProtocolError
from proto.names import DOMAINS, PERSISTENT, is_blank, is_named_entity

if TYPE_CHECKING:
    from client.connection.cnx import ClientCnx
    from proxy.brokers import Address, BrokerConnections
    from proxy.errors import ErrorTranslation

FIRST_REQUEST_ID = 0
MAX_REDIRECTS = 10
"""Most redirects of a lookup followed by the proxy (upstream: the same)."""


class LookupProxyHandler:
    """Forwards clients' lookups, partition queries and schema requests to brokers.

    Args:
        address: The broker requested first.
        translation: Translates broker errors to client errors.
    """

    def __init__(self, address: Address, translation: ErrorTranslation) -> None:
        self._address = address
        self._translation = translation

    async def lookup(
        self, request: pb.CommandLookupTopic, brokers: BrokerConnections
    ) -> pb.CommandLookupTopicResponse:
        """Return the answer to a client's lookup, after following redirects between brokers.

        Raises:
            RequestError: The lookup failed.
        """
        broker: ClientCnx | None = None
        address, authoritative = self._address, request.authoritative
        listener = self._listener_name(request)
        try:
            for _ in range(MAX_REDIRECTS + 1):
                broker = await brokers.get(address)
                answer = await lookup_once(
                    broker, request.topic, authoritative=authoritative, listener_name=listener
                )
                url = answer.brokerServiceUrlTls if brokers.tls else answer.brokerServiceUrl
                if brokers.tls and not url:
                    raise ConnectError(
                        "the broker names no address for TLS: set its brokerServicePortTls"
                    )
                if answer.response == pb.CommandLookupTopicResponse.Connect:
                    return _through_proxy(request.request_id, url)
                address, authoritative = server_address(url, tls=brokers.tls), answer.authoritative
            raise ConnectError("Reached max number of redirections")
        except PulsarException as error:
            raise self._translation.of(error, broker) from None

    async def partitions(
        self, request: pb.CommandPartitionedTopicMetadata, brokers: BrokerConnections
    ) -> pb.CommandPartitionedTopicMetadataResponse:
        """Return the broker's answer to a partition query, with the client's request id.

        Raises:
            RequestError: The broker refused or is unreachable.
        """
        broker: ClientCnx | None = None
        try:
            broker = await brokers.get(self._address)
            command = await broker.request(lambda request_id: self._forwarded(request, request_id))
        except PulsarException as error:
            raise self._translation.of_partitions(error, broker) from None
        answer = command.partitionMetadataResponse
        # A Pulsar proxy in the broker's place reports a failure as a lookup's.
        by_proxy = command.type == pb.BaseCommand.LOOKUP_RESPONSE
        if by_proxy or answer.response == pb.CommandPartitionedTopicMetadataResponse.Failed:
            failed = command.lookupTopicResponse if by_proxy else answer
            refusal = ServerResponseError(failed.error, failed.message)
            raise self._translation.of_partitions(refusal, broker)
        answer.request_id = request.request_id
        return answer

    async def schema(
        self, request: pb.CommandGetSchema, brokers: BrokerConnections
    ) -> pb.CommandGetSchemaResponse:
        """Return the broker's answer to a schema request, with the client's request id.

        A missing topic or schema is an answer, forwarded unchanged.

        Raises:
            RequestError: The broker refused or is unreachable.
        """

        def build(request_id: int) -> pb.BaseCommand:
            command = pb.BaseCommand(type=pb.BaseCommand.GET_SCHEMA)
            command.getSchema.CopyFrom(request)
            command.getSchema.request_id = request_id
            return command

        broker: ClientCnx | None = None
        try:
            broker = await brokers.get(self._address)
            answer = (await broker.request(build)).getSchemaResponse
        except PulsarException as error:
            raise self._translation.of(error, broker) from None
        answer.request_id = request.request_id
        return answer

    def check_topic(self, topic: str) -> None:
        """Check the topic name in a partition query; a no-op here, since the broker checks it.

        Raises:
            RemoteProtocolError: A Pulsar proxy closes the connection for an invalid topic.
        """

    def _listener_name(self, request: pb.CommandLookupTopic) -> str | None:
        return request.advertised_listener_name

    def _forwarded(
        self, request: pb.CommandPartitionedTopicMetadata, request_id: int
    ) -> pb.BaseCommand:
        command = pb.BaseCommand(type=pb.BaseCommand.PARTITIONED_METADATA)
        command.partitionMetadata.CopyFrom(request)
        command.partitionMetadata.request_id = request_id
        return command


class PulsarLookupProxyHandler(LookupProxyHandler):
    """Forwards requests exactly like a Pulsar proxy, including its deviations.

    A lookup drops the client's listener name; the first partition query of a connection requests
    auto-creation regardless of the client's choice; an invalid topic name in a partition query
    closes the client's connection.
    """

    def check_topic(self, topic: str) -> None:
        """Raise an error for a topic name that a Pulsar proxy does not accept."""
        if not _known_to_a_pulsar_proxy(topic):
            raise RemoteProtocolError(f"Invalid topic name: {topic}")

    def _listener_name(self, request: pb.CommandLookupTopic) -> str | None:
        return None

    def _forwarded(
        self, request: pb.CommandPartitionedTopicMetadata, request_id: int
    ) -> pb.BaseCommand:
        command = super()._forwarded(request, request_id)
        if request_id == FIRST_REQUEST_ID:
            # A real proxy loses the field while its connection is being opened.
            command.partitionMetadata.ClearField("metadata_auto_creation_enabled")
        return command


def _known_to_a_pulsar_proxy(topic: str) -> bool:
    """Return True if a proxy of Pulsar 4.0 accepts a topic name.

    It accepts names with a cluster, which brokers refuse.
    """
    domain, scheme, path = topic.partition("://")
    if not scheme:
        if "/" not in topic:
            return not is_blank(topic)
        domain, path = PERSISTENT, topic
        if topic.count("/") != 2:
            return False
    *parts, local = path.split("/", 3)
    known = domain.casefold() in DOMAINS and len(parts) in (2, 3) and not is_blank(local)
    return known and all(map(is_named_entity, parts))


def _through_proxy(request_id: int, url: str) -> pb.CommandLookupTopicResponse:
    """Return the lookup answer that sends a client to the proxy, naming the broker's URL.

    The answer is the same for TLS and plain brokers: broker connections are the proxy's concern.
    """
    return pb.CommandLookupTopicResponse(
        request_id=request_id,
        response=pb.CommandLookupTopicResponse.Connect,
        authoritative=True,
        brokerServiceUrl=url,
        brokerServiceUrlTls=url,
        proxy_through_service_url=True,
    )

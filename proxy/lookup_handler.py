"""Forwards LOOKUP and PARTITIONED_METADATA, with request ids of the proxy's own.

Source: upstream LookupProxyHandler. As shipped, a lookup drops the client's listener name, a
partition query always asks for auto-creation, and its failure comes back as a LOOKUP_RESPONSE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.errors import ConnectError, PulsarClientError, ServerResponseError
from client.pool import server_address
from client.pulsar_client import lookup_once
from proto.errors import RemoteProtocolError
from proto.names import InvalidNameError, TopicName

if TYPE_CHECKING:
    from client.cnx import ClientCnx
    from proxy.brokers import Address, BrokerConnections
    from proxy.errors import ErrorTranslation

MAX_REDIRECTS = 10
"""Redirects of a lookup that the proxy follows itself (upstream: the same)."""


class LookupProxyHandler:
    """Asks brokers for clients.

    Args:
        address: The broker that is asked first.
        translation: Turns brokers' errors into clients'.
        as_shipped: Profile pulsar.
    """

    def __init__(
        self, address: Address, translation: ErrorTranslation, *, as_shipped: bool
    ) -> None:
        self._address = address
        self._translation = translation
        self._as_shipped = as_shipped

    async def lookup(
        self, request: pb.CommandLookupTopic, brokers: BrokerConnections
    ) -> pb.CommandLookupTopicResponse:
        """Return where a topic is served, redirects followed.

        Raises:
            RequestError: The lookup failed.
        """
        broker: ClientCnx | None = None
        address, authoritative = self._address, request.authoritative
        listener = None if self._as_shipped else request.advertised_listener_name
        try:
            for _ in range(MAX_REDIRECTS + 1):
                broker = await brokers.get(address)
                answer = await lookup_once(
                    broker, request.topic, authoritative=authoritative, listener_name=listener
                )
                if answer.response == pb.CommandLookupTopicResponse.Connect:
                    return _through_proxy(request.request_id, answer)
                address, authoritative = (
                    server_address(answer.brokerServiceUrl),
                    answer.authoritative,
                )
            raise ConnectError("Reached max number of redirections")
        except PulsarClientError as error:
            raise self._translation.of(error, broker) from None

    async def partitions(
        self, request: pb.CommandPartitionedTopicMetadata, brokers: BrokerConnections
    ) -> pb.CommandPartitionedTopicMetadataResponse:
        """Return the broker's answer to a partition query under the client's request id.

        Raises:
            RequestError: The broker refused or cannot be reached.
        """
        broker: ClientCnx | None = None
        try:
            broker = await brokers.get(self._address)
            command = await broker.request(lambda request_id: self._forwarded(request, request_id))
        except PulsarClientError as error:
            raise self._translation.of_partitions(error, broker) from None
        if command.type == pb.BaseCommand.LOOKUP_RESPONSE:
            # A Pulsar proxy in the broker's place tells a failure so.
            failed = command.lookupTopicResponse
            refusal = ServerResponseError(failed.error, failed.message)
            raise self._translation.of_partitions(refusal, broker)
        answer = command.partitionMetadataResponse
        if answer.response == pb.CommandPartitionedTopicMetadataResponse.Failed:
            raise self._translation.of_partition_answer(answer, broker)
        answer.request_id = request.request_id
        return answer

    def _forwarded(
        self, request: pb.CommandPartitionedTopicMetadata, request_id: int
    ) -> pb.BaseCommand:
        command = pb.BaseCommand(type=pb.BaseCommand.PARTITIONED_METADATA)
        command.partitionMetadata.CopyFrom(request)
        command.partitionMetadata.request_id = request_id
        if self._as_shipped:
            command.partitionMetadata.ClearField("metadata_auto_creation_enabled")
        return command

    def check_topic(self, topic: str) -> None:
        """As shipped, a partition query with an invalid topic name closes the connection.

        Raises:
            RemoteProtocolError: It does.
        """
        if self._as_shipped:
            try:
                TopicName.parse(topic)
            except InvalidNameError as error:
                raise RemoteProtocolError(str(error)) from None


def _through_proxy(
    request_id: int, answer: pb.CommandLookupTopicResponse
) -> pb.CommandLookupTopicResponse:
    """Tell the client to come back here and name the broker that was found."""
    return pb.CommandLookupTopicResponse(
        request_id=request_id,
        response=pb.CommandLookupTopicResponse.Connect,
        authoritative=True,
        brokerServiceUrl=answer.brokerServiceUrl,
        brokerServiceUrlTls=answer.brokerServiceUrl,
        proxy_through_service_url=True,
    )

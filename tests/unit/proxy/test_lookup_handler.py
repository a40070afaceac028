"""The proxy's answers to lookups, partition queries and schema questions, made of a broker's."""

import asyncio
from contextlib import nullcontext

import pytest

import proto.PulsarApi_pb2 as pb
from client.connection.cnx import ClientCnx
from client.connection.connect_options import ConnectOptions
from proto.errors import RemoteProtocolError
from proxy.errors import ErrorTranslation, PulsarErrorTranslation
from proxy.lookup_handler import LookupProxyHandler, PulsarLookupProxyHandler
from server.connection.request_errors import RequestError
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import started
from tests.support.processes.commands import Wire

Type = pb.BaseCommand
ADDRESS = ("10.0.0.1", 6650)
TOPIC = "persistent://tenant/ns/topic"
Lookup = pb.CommandLookupTopicResponse
Partitions = pb.CommandPartitionedTopicMetadataResponse


class Broker:
    """A broker played by the test, found at every address."""

    def __init__(self, *, pulsar: bool = False, tls: bool = False) -> None:
        self.tls = tls
        self.asked_at: list[tuple[str, int]] = []
        self.cnx = ClientCnx(ConnectOptions(), ManualClock())
        self.wire = Wire(self.cnx)
        connected = pb.CommandConnected(server_version="test", protocol_version=21)
        self.wire.say(pb.BaseCommand(type=Type.CONNECTED, connected=connected))
        self.wire.answers()
        self.handler = (
            PulsarLookupProxyHandler(ADDRESS, PulsarErrorTranslation())
            if pulsar
            else LookupProxyHandler(ADDRESS, ErrorTranslation())
        )

    async def get(self, address: tuple[str, int]) -> ClientCnx:
        self.asked_at.append(address)
        return self.cnx

    def release(self) -> None:
        """The client has left."""

    async def lookup(self, **fields: object) -> asyncio.Task[Lookup]:
        request = pb.CommandLookupTopic(topic=TOPIC, request_id=77, **fields)
        return await started(self.handler.lookup(request, self))

    async def partitions(self, **fields: object) -> asyncio.Task[Partitions]:
        request = pb.CommandPartitionedTopicMetadata(topic=TOPIC, request_id=77, **fields)
        return await started(self.handler.partitions(request, self))

    async def schema(self, **fields: object) -> asyncio.Task[pb.CommandGetSchemaResponse]:
        request = pb.CommandGetSchema(topic=TOPIC, request_id=77, **fields)
        return await started(self.handler.schema(request, self))

    def say_schema(self, **fields: object) -> None:
        response = pb.CommandGetSchemaResponse(**fields)
        self.wire.say(pb.BaseCommand(type=Type.GET_SCHEMA_RESPONSE, getSchemaResponse=response))

    def say_lookup(self, **fields: object) -> None:
        response = Lookup(**fields)
        self.wire.say(pb.BaseCommand(type=Type.LOOKUP_RESPONSE, lookupTopicResponse=response))

    def say_partitions(self, **fields: object) -> None:
        response = Partitions(**fields)
        kind = Type.PARTITIONED_METADATA_RESPONSE
        self.wire.say(pb.BaseCommand(type=kind, partitionMetadataResponse=response))


async def test_a_lookup_answer_names_the_broker_and_routes_the_client_through_the_proxy() -> None:
    broker = Broker()
    asked = await broker.lookup()
    url = "pulsar://10.0.0.2:6650"
    broker.say_lookup(request_id=0, response=Lookup.Connect, brokerServiceUrl=url)
    answer = await asked
    assert (answer.request_id, answer.brokerServiceUrl) == (77, url)
    assert answer.proxy_through_service_url
    assert broker.asked_at == [ADDRESS]


async def test_the_proxy_follows_a_lookup_redirect_itself() -> None:
    broker = Broker()
    asked = await broker.lookup()
    redirect = {"response": Lookup.Redirect, "authoritative": True}
    broker.say_lookup(request_id=0, brokerServiceUrl="pulsar://10.0.0.3:6651", **redirect)
    second = await started(_turn())
    broker.say_lookup(request_id=1, response=Lookup.Connect, brokerServiceUrl="pulsar://x:1")
    assert second.done()
    assert (await asked).brokerServiceUrl == "pulsar://x:1"
    assert broker.asked_at == [ADDRESS, ("10.0.0.3", 6651)]
    sent = [command.lookupTopic.authoritative for command in broker.wire.answers()]
    assert sent == [False, True]


async def _turn() -> None:
    """Run one step of the proxy."""


async def test_with_tls_the_proxy_uses_the_tls_addresses_of_lookup_answers() -> None:
    broker = Broker(tls=True)
    asked = await broker.lookup()
    plain = {"brokerServiceUrl": "pulsar://10.0.0.9:6650"}
    there = "pulsar+ssl://10.0.0.3:6651"
    broker.say_lookup(request_id=0, response=Lookup.Redirect, brokerServiceUrlTls=there, **plain)
    await started(_turn())
    broker.say_lookup(
        request_id=1, response=Lookup.Connect, brokerServiceUrlTls="pulsar+ssl://x:1", **plain
    )
    # Both fields hold the broker's address, whatever protocol the client speaks
    answer = await asked
    assert (answer.brokerServiceUrl, answer.brokerServiceUrlTls) == ("pulsar+ssl://x:1",) * 2
    assert broker.asked_at == [ADDRESS, ("10.0.0.3", 6651)]


@pytest.mark.parametrize("response", [Lookup.Connect, Lookup.Redirect])
async def test_with_tls_a_lookup_answer_without_a_tls_address_is_refused(response: int) -> None:
    broker = Broker(tls=True)
    asked = await broker.lookup()
    broker.say_lookup(request_id=0, response=response, brokerServiceUrl="pulsar://10.0.0.9:6650")
    with pytest.raises(RequestError, match="set its brokerServicePortTls"):
        await asked
    assert broker.asked_at == [ADDRESS]


async def test_endless_lookup_redirects_fail_with_service_not_ready() -> None:
    broker = Broker()
    asked = await broker.lookup()
    for number in range(11):
        redirect = {"response": Lookup.Redirect, "brokerServiceUrl": "pulsar://x:1"}
        broker.say_lookup(request_id=number, **redirect)
        await started(_turn())
    with pytest.raises(RequestError) as caught:
        await asked
    assert caught.value.server_error == pb.ServiceNotReady
    assert caught.value.message == "Reached max number of redirections"


@pytest.mark.parametrize("url", ["", "pulsar+ssl://x:1", "no url"])
async def test_a_lookup_redirect_without_a_valid_address_fails_with_service_not_ready(
    url: str,
) -> None:
    broker = Broker()
    asked = await broker.lookup()
    broker.say_lookup(request_id=0, response=Lookup.Redirect, brokerServiceUrl=url)
    with pytest.raises(RequestError) as caught:
        await asked
    assert caught.value.server_error == pb.ServiceNotReady


@pytest.mark.parametrize(("pulsar", "passed"), [(True, ""), (False, "external")])
async def test_the_advertised_listener_is_forwarded_unless_in_profile_pulsar(
    pulsar, passed
) -> None:
    broker = Broker(pulsar=pulsar)
    asked = await broker.lookup(advertised_listener_name="external")
    (sent,) = broker.wire.answers()
    assert sent.lookupTopic.advertised_listener_name == passed
    asked.cancel()


async def test_a_partition_query_is_answered_with_the_clients_request_id() -> None:
    broker = Broker()
    asked = await broker.partitions(metadata_auto_creation_enabled=False)
    (sent,) = broker.wire.answers()
    broker.say_partitions(request_id=0, response=Partitions.Success, partitions=5)
    answer = await asked
    assert (answer.request_id, answer.partitions) == (77, 5)
    assert not sent.partitionMetadata.metadata_auto_creation_enabled


async def test_in_profile_pulsar_only_the_first_partition_query_asks_for_auto_creation() -> None:
    broker = Broker(pulsar=True)
    asked = [await broker.partitions(metadata_auto_creation_enabled=False) for _ in range(2)]
    sent = [one.partitionMetadata.metadata_auto_creation_enabled for one in broker.wire.answers()]
    assert sent == [True, False]
    for one in asked:
        one.cancel()


@pytest.mark.parametrize("pulsar", [True, False])
@pytest.mark.parametrize(
    ("say", "failed"),
    [
        (Broker.say_partitions, Partitions.Failed),
        # A Pulsar proxy, queried like a broker, answers with a LOOKUP_RESPONSE.
        (Broker.say_lookup, Lookup.Failed),
    ],
)
async def test_a_failed_partition_query_keeps_the_brokers_error_in_either_response_type(
    pulsar, say, failed
) -> None:
    broker = Broker(pulsar=pulsar)
    asked = await broker.partitions()
    say(broker, request_id=0, response=failed, error=pb.TopicNotFound, message="none")
    with pytest.raises(RequestError) as caught:
        await asked
    assert caught.value.server_error == pb.TopicNotFound
    assert caught.value.by_broker


async def test_only_in_profile_pulsar_an_invalid_topic_name_closes_the_connection() -> None:
    Broker().handler.check_topic("topic://x")
    with pytest.raises(RemoteProtocolError):
        Broker(pulsar=True).handler.check_topic("topic://x")


@pytest.mark.parametrize(
    ("topic", "known"),
    [
        ("persistent://t/cluster/ns/x", True),
        ("non-persistent://t/ns/://", True),
        ("/a//b/c", False),
        ("x", True),
        ("/x", False),
        ("t/ns/x", True),
        ("t/c/ns//", False),
        ("persistent://t/c/ns//", True),
        ("t/ns", False),
        ("persistent://t/ns/ ", False),
        ("persistent://t/c/n s/x", False),
        ("persistent://t//x", False),
    ],
)
async def test_in_profile_pulsar_names_with_a_cluster_are_valid_and_malformed_names_are_refused(
    topic, known
) -> None:
    handler = Broker(pulsar=True).handler
    with nullcontext() if known else pytest.raises(RemoteProtocolError):
        handler.check_topic(topic)


async def test_a_schema_query_is_answered_with_the_clients_request_id() -> None:
    broker = Broker()
    asked = await broker.schema(schema_version=b"\0\1")
    (question,) = broker.wire.answers()
    schema = pb.Schema(name="s", schema_data=b"{}", type=pb.Schema.Json)
    broker.say_schema(request_id=0, schema=schema, schema_version=b"\0\1")
    answer = await asked
    assert (question.getSchema.topic, question.getSchema.schema_version) == (TOPIC, b"\0\1")
    assert (answer.request_id, answer.schema, answer.schema_version) == (77, schema, b"\0\1")


@pytest.mark.parametrize("pulsar", [True, False])
async def test_a_missing_schema_is_passed_on_as_an_answer_with_its_error_code(pulsar: bool) -> None:
    broker = Broker(pulsar=pulsar)
    asked = await broker.schema()
    text = f"Topic not found or no-schema {TOPIC}"
    broker.say_schema(request_id=0, error_code=pb.TopicNotFound, error_message=text)
    answer = await asked
    assert (answer.error_code, answer.error_message) == (pb.TopicNotFound, text)
    assert answer.request_id == 77


async def test_a_schema_query_that_the_broker_refuses_is_refused() -> None:
    broker = Broker()
    asked = await broker.schema()
    error = pb.CommandError(request_id=0, error=pb.AuthorizationError, message="no")
    broker.wire.say(pb.BaseCommand(type=Type.ERROR, error=error))
    with pytest.raises(RequestError) as refused:
        await asked
    assert (refused.value.server_error, refused.value.message) == (pb.AuthorizationError, "no")

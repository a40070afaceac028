"""Bypasses of authorization, tried over sockets: each path is checked."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack
from functools import partial

import pytest

from broker.configuration.config import BrokerConfig
from broker.service import BrokerService
from proto import PulsarApi_pb2 as pb
from server.configuration.authorization import MULTI_ROLES_PROVIDER
from server.seeing.own_operations import OWN_OPERATIONS
from tests.recording.security import keys as recorded_keys
from tests.support.golden.connection import GoldenConnection
from tests.support.golden.exchange import Rest, Send
from tests.support.golden.rest import RestAnswer, ask
from tests.support.security.binary import ORDERS, QUESTIONS, answers, connect, question, shown
from tests.support.security.credentials import Credential, token
from tests.support.security.servers import Secured, beside_the_servers, secured

SHOP = "acme/shop"
NAMES = (
    "persistent://acme/shop/orders",
    "persistent://acme/shop/orders-partition-0",
    "persistent://acme/shop/orders-partition-00",
    "persistent://acme/shop/parted-partition-1",
    "persistent://acme/shop/parted-partition-9",
    "persistent://acme/shop/%6frders",
    "persistent://acme/shop/__change_events",
    "persistent://acme/standalone/shop/orders",
    "non-persistent://acme/shop/orders",
    "acme/shop/orders",
    "orders",
    "PERSISTENT://acme/shop/orders",
    "persistent://acme/shop/orders ",
    "persistent://pulsar/system/transaction_coordinator_assign-partition-0",
    "",
)
OF_TOPICS = (
    "LOOKUP",
    "PARTITIONED_METADATA",
    "PRODUCER",
    "SUBSCRIBE",
    "GET_SCHEMA",
    "GET_OR_CREATE_SCHEMA",
)
OF_NAMESPACES = ("GET_TOPICS_OF_NAMESPACE", "WATCH_TOPIC_LIST")
SPELLINGS = (
    "/admin/v2/persistent/acme/shop",
    "/admin/v2/persistent/acme/shop/",
    "/admin/v2/persistent/acme/shop;a=b",
    "/admin/v2/persistent/%61cme/shop",
    "/admin/v2/persistent/acme%2Fshop",
    "/admin/v2/persistent//acme/shop",
    "//admin/v2/persistent/acme/shop",
    "/admin/v2/./persistent/acme/shop",
    "/admin/v2/brokers/../persistent/acme/shop",
    "/metrics/../admin/v2/persistent/acme/shop",
    "/admin/persistent/acme/standalone/shop",
    "/admin/v2/namespaces/acme/shop/topics",
    "/admin/v2/persistent/acme/shop/%6frders/stats",
    "/admin/v2/persistent/acme/shop/orders/stats/",
    "/admin/v2/persistent/acme/shop/orders;a=b/stats",
    "/admin/v2/persistent/acme/shop/orders/stats%3Fx",
    "/lookup/v2/topic/persistent/acme/shop/orders",
    "/lookup/v2/topic/persistent/acme/shop/%6frders",
    "/admin/v2/brokers/configuration/values",
)


@pytest.fixture
async def servers() -> AsyncIterator[Secured]:
    async with secured("floodgate", broker={"floodgateFaultsEnabled": "true"}) as found:
        yield found


def of(who: str) -> Credential:
    role, _, original = who.partition(" for ")
    return Credential(who, token(role), original)


def asked(address: str, who: str, *commands: pb.BaseCommand) -> str:
    hello = connect(of(who), flags=["supports_topic_watchers"])
    return answers(address, [hello, *commands], last_only=True)[-1]


def call(web: str, who: str, path: str, method: str = "GET", body: str | None = None) -> RestAnswer:
    headers = (of(who).headers if who else {}) | {"Content-Type": "application/json"}
    return ask(web, Rest(method, path, body, 0), headers)


# -- commands -------------------------------------------------------------------------------------


@beside_the_servers
def test_no_spelling_of_a_name_bypasses_authorization(servers: Secured) -> None:
    before = call(servers.web, "super", f"/admin/v2/persistent/{SHOP}").body
    commands = [question(kind, name) for kind in OF_TOPICS for name in NAMES]
    commands += [question(kind, name) for kind in OF_NAMESPACES for name in (SHOP, "acme", "")]
    for command in commands:
        came = asked(servers.address, "nobody", command)
        refused = "AuthorizationError" in came or "InvalidTopicName" in came
        assert refused or came == "(closed)", f"{command}: {came}"
    assert call(servers.web, "super", f"/admin/v2/persistent/{SHOP}").body == before


@beside_the_servers
def test_a_topic_grant_covers_its_partitions_but_no_similar_name(servers: Secured) -> None:
    may = partial(asked, servers.address, "topic-produce")
    parted = "persistent://acme/shop/parted"
    assert may(question("LOOKUP", f"{parted}-partition-0")) == "LOOKUP_RESPONSE Connect"
    for name in (
        f"{parted}-other",
        f"{parted}-partition-0-partition-0",
        f"{parted}-partition-",
    ):
        assert "AuthorizationError" in may(question("LOOKUP", name)), name


@beside_the_servers
def test_producer_and_consumer_ids_are_valid_on_one_connection_only(servers: Secured) -> None:
    host, _, port = servers.address.rpartition(":")
    with ExitStack() as exits:
        owner, other = (exits.enter_context(GoldenConnection(host, int(port))) for _ in range(2))
        for connection, who in ((owner, "admin"), (other, "nobody")):
            connection.send(Send(connect(of(who))))
            assert shown(connection.receive(5)) == "CONNECTED"
        for kind in ("PRODUCER", "SUBSCRIBE"):
            owner.send(Send(question(kind, ORDERS)))
            assert shown(owner.receive(5)) in ("PRODUCER_SUCCESS", "SUCCESS")
        for command in of_ids():
            other.send(Send(command))
            came = shown(other.receive(5))
            assert "not found" in came or came == "SUCCESS", came
        owner.send(Send(stats()))
        assert shown(owner.receive(5)) == "CONSUMER_STATS_RESPONSE"
    kept = call(servers.web, "super", f"/admin/v2/persistent/{SHOP}/orders/subscriptions")
    assert "sub" in json.loads(kept.body)


def of_ids() -> list[pb.BaseCommand]:
    """Commands about the producer or consumer 0."""
    unsubscribe = pb.BaseCommand(type=pb.BaseCommand.UNSUBSCRIBE)
    unsubscribe.unsubscribe.consumer_id, unsubscribe.unsubscribe.request_id = 0, 5
    seek = pb.BaseCommand(type=pb.BaseCommand.SEEK)
    seek.seek.consumer_id, seek.seek.request_id, seek.seek.message_publish_time = 0, 6, 0
    last = pb.BaseCommand(type=pb.BaseCommand.GET_LAST_MESSAGE_ID)
    last.getLastMessageId.consumer_id, last.getLastMessageId.request_id = 0, 7
    closes = pb.BaseCommand(type=pb.BaseCommand.CLOSE_CONSUMER)
    closes.close_consumer.consumer_id, closes.close_consumer.request_id = 0, 8
    ends = pb.BaseCommand(type=pb.BaseCommand.CLOSE_PRODUCER)
    ends.close_producer.producer_id, ends.close_producer.request_id = 0, 9
    return [unsubscribe, seek, last, closes, ends]


def stats() -> pb.BaseCommand:
    command = pb.BaseCommand(type=pb.BaseCommand.CONSUMER_STATS)
    command.consumerStats.consumer_id, command.consumerStats.request_id = 0, 3
    return command


@pytest.mark.parametrize("subject", [ORDERS, "persistent://acme/shop/missing"])
@beside_the_servers
def test_ending_a_transaction_does_not_reveal_if_a_topic_exists(servers, subject) -> None:
    command = pb.BaseCommand(type=pb.BaseCommand.END_TXN_ON_PARTITION)
    command.endTxnOnPartition.topic, command.endTxnOnPartition.request_id = subject, 1
    came = asked(servers.address, "nobody", command)
    assert came.startswith("END_TXN_ON_PARTITION_RESPONSE NotAllowedError")


@beside_the_servers
def test_a_listing_in_flight_at_the_proxy_is_not_shared_without_permission(servers) -> None:
    host, _, port = servers.proxy_address.rpartition(":")
    with ExitStack() as exits:
        by_role = {
            who: [exits.enter_context(GoldenConnection(host, int(port))) for _ in range(8)]
            for who in ("consume", "nobody")
        }
        for who, connections in by_role.items():
            for one in connections:
                one.send(Send(connect(of(who))))
                assert shown(one.receive(5)) == "CONNECTED"
        for pair in zip(*by_role.values(), strict=True):
            for one in pair:
                one.send(Send(question("GET_TOPICS_OF_NAMESPACE", SHOP)))
        came = {who: {shown(one.receive(5)) for one in by_role[who]} for who in by_role}
    assert came["consume"] == {"GET_TOPICS_OF_NAMESPACE_RESPONSE"}
    assert all("AuthorizationError" in one for one in came["nobody"])


@beside_the_servers
def test_a_refused_watch_receives_no_updates(servers: Secured) -> None:
    host, _, port = servers.address.rpartition(":")
    with GoldenConnection(host, int(port)) as connection:
        connection.send(Send(connect(of("nobody"), flags=["supports_topic_watchers"])))
        assert shown(connection.receive(5)) == "CONNECTED"
        connection.send(Send(question("WATCH_TOPIC_LIST", SHOP)))
        assert "AuthorizationError" in shown(connection.receive(5))
        assert call(servers.web, "super", f"/admin/v2/persistent/{SHOP}/made", "PUT", "{}")
        connection.send(Send(question("GET_TOPICS_OF_NAMESPACE", SHOP)))
        # No update comes before it.
        assert "GetTopicsOfNamespace" in shown(connection.receive(5))


# -- REST -----------------------------------------------------------------------------------------


@beside_the_servers
def test_no_spelling_of_a_path_bypasses_authorization(servers: Secured) -> None:
    for web in (servers.web, servers.proxy_web):
        for path in SPELLINGS:
            for who in ("nobody", ""):
                status = call(web, who, path).status
                assert status in (400, 401, 403, 404, 405, 412), (web, path, who, status)


@beside_the_servers
def test_floodgate_routes_require_a_superuser_on_broker_and_proxy(servers: Secured) -> None:
    own = [
        (one.method, one.path.replace("{number}", "1").replace("{id}", "1"))
        for one in OWN_OPERATIONS
        if one.path.startswith("/admin/v2/floodgate/")
    ]
    assert len(own) >= 10

    for web in (servers.web, servers.proxy_web):
        for method, path in own:
            for who in ("nobody", "admin", "gate for nobody", "admin for super", ""):
                answer = call(web, who, path, method, "{}" if method == "POST" else None)
                assert answer.status == 401, (web, method, path, who, answer)
        assert call(web, "super", "/admin/v2/floodgate/limiter").status == 200
        assert call(web, "nobody", "/openapi.json").status == 200
        assert call(web, "nobody", "/admin/v2/brokers/ready").status == 200


@beside_the_servers
def test_a_move_topic_fault_of_a_tenant_admin_is_refused(servers: Secured) -> None:
    fault = json.dumps(
        {"on": {"command": "LOOKUP"}, "do": {"action": "moveTopic"}}, separators=(",", ":")
    )
    path = "/admin/v2/floodgate/faults"
    assert call(servers.web, "admin", path, "POST", fault).status == 401


# -- changes meanwhile ----------------------------------------------------------------------------


@beside_the_servers
def test_a_removed_tenant_admin_is_refused_immediately(servers: Secured) -> None:
    lists = partial(asked, servers.address, "admin", question("GET_TOPICS_OF_NAMESPACE", SHOP))
    assert lists() == "GET_TOPICS_OF_NAMESPACE_RESPONSE"
    nobody = json.dumps({"allowedClusters": ["standalone"], "adminRoles": []})
    assert call(servers.web, "super", "/admin/v2/tenants/acme", "POST", nobody).status == 204
    assert "AuthorizationError" in lists()


@beside_the_servers
def test_a_recreated_topic_has_no_grants(servers: Secured) -> None:
    may = partial(asked, servers.address, "topic-produce", question("LOOKUP", ORDERS))
    path = f"/admin/v2/persistent/{SHOP}/orders"
    assert may() == "LOOKUP_RESPONSE Connect"
    assert call(servers.web, "admin", path, "DELETE").status == 204
    assert call(servers.web, "admin", path, "PUT", "{}").status == 204
    assert "AuthorizationError" in may()


@beside_the_servers
def test_a_superuser_added_at_run_time_is_authorized(servers: Secured) -> None:
    lists = partial(asked, servers.address, "nobody", question("GET_TOPICS_OF_NAMESPACE", SHOP))
    path = "/admin/v2/brokers/configuration/superUserRoles/super,gate,nobody"
    assert "AuthorizationError" in lists()
    assert call(servers.web, "super", path, "POST").status == 200
    assert lists() == "GET_TOPICS_OF_NAMESPACE_RESPONSE"
    assert call(servers.web, "nobody", "/admin/v2/floodgate/limiter").status == 200


async def test_metrics_require_credentials_with_authenticate_metrics_endpoint() -> None:
    async with secured("floodgate", broker={"authenticateMetricsEndpoint": "true"}) as servers:

        def work() -> None:
            assert call(servers.web, "", "/metrics/").status == 401
            assert call(servers.web, "nobody", "/metrics/").status == 200
            assert call(servers.web, "", "/status.html").status == 404  # open, and no file

        await asyncio.to_thread(work)


@pytest.mark.parametrize(("provider", "status"), [(MULTI_ROLES_PROVIDER, 200), ("", 401)])
async def test_the_multi_roles_provider_authorizes_any_role_of_a_token(provider, status) -> None:
    keys = {
        **dict(line.split("=", 1) for line in recorded_keys("broker", forwarding=False)),
        "brokerServicePort": "0",
        "webServicePort": "0",
        "tokenAuthClaim": "roles",
        "authorizationProvider": provider,
    }
    several = Credential("several", token(None, roles=["nobody", "super"])).headers
    async with BrokerService(BrokerConfig.from_properties(keys)) as broker:
        web = broker.web_service_url.partition("://")[2]
        tenants = Rest("GET", "/admin/v2/tenants", None, 0)
        assert (await asyncio.to_thread(ask, web, tenants, several)).status == status


def test_every_kind_of_command_is_covered() -> None:
    kinds = {kind.partition(" ")[0] for kind, _ in QUESTIONS}
    assert kinds == {*OF_TOPICS, *OF_NAMESPACES}

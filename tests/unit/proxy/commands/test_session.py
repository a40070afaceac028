from dataclasses import replace
from pathlib import Path

import pytest

import proto.PulsarApi_pb2 as pb
from proxy.service import ProxyService
from tests.support.authentication.credentials import properties, token
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.peers.byte_broker import ByteBroker, connected_command
from tests.support.peers.raw_peer import connect_command
from tests.support.processes.cluster import proxy_config
from tests.unit.proxy.commands.test_table import State, parts, wire

PLUGIN = "org.apache.pulsar.client.impl.auth.Authentication"


@pytest.mark.parametrize(("offered", "spoken"), [(10, 10), (20, 20), (21, 21), (99, 21)])
async def test_connected_negotiates_the_protocol_version_and_holds_the_recorded_feature_flags(
    offered: int, spoken: int
) -> None:
    client = wire(State.INIT)
    client.say(connect_command(protocol_version=offered))
    (answer,) = client.answers()
    flags = answer.connected.feature_flags
    assert answer.connected.protocol_version == spoken
    assert not answer.connected.HasField("max_message_size")
    assert not flags.supports_topic_watchers
    assert flags.supports_get_partitioned_metadata_without_auto_creation
    assert client.cnx.state is State.PROXY_LOOKUP_REQUESTS


@pytest.mark.parametrize("offered", [0, 9])
async def test_a_connect_with_a_protocol_version_below_10_closes_the_connection(
    offered: int,
) -> None:
    client = wire(State.INIT)
    client.say(connect_command(protocol_version=offered))
    assert client.closed
    assert client.answers() == []


async def test_an_internal_failure_to_open_a_pipe_is_answered_with_unknown_error_and_closed(
    caplog,
) -> None:
    client = wire(State.INIT)

    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    client.cnx.parts.direct_handler.open = fail
    client.say(connect_command("127.0.0.1:6650"))
    await settle()
    (answer,) = client.answers()
    assert answer.error.error == pb.UnknownError
    assert client.closed
    assert len(caplog.records) == 1


def showing(data: bytes, target: str | None = None) -> pb.BaseCommand:
    command = connect_command(target)
    command.connect.auth_method_name = "token"
    command.connect.auth_data = data
    return command


def own_credentials(folder: Path) -> dict[str, str]:
    (folder / "proxy.jwt").write_bytes(token(sub="proxy"))
    return {
        **properties(folder),
        "brokerClientAuthenticationPlugin": f"{PLUGIN}Token",
        "brokerClientAuthenticationParameters": f"file://{folder / 'proxy.jwt'}",
    }


async def test_a_client_without_credentials_gets_an_authentication_error_and_is_closed(
    tmp_path: Path,
) -> None:
    client = wire(State.INIT, parts(**properties(tmp_path)))
    client.say(connect_command())
    (answer,) = client.answers()
    assert answer.error.error == pb.AuthenticationError
    assert answer.error.message == "Failed to authenticate"
    assert (client.closed, client.cnx.parts.connection_counters.create_fail) == (True, 1)


@pytest.mark.parametrize("forwards", [False, True])
@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
@pytest.mark.parametrize("piped", [False, True])
async def test_the_proxy_sends_brokers_its_own_credentials_and_the_clients_principal(
    forwards, profile, piped, tmp_path
) -> None:
    shown = token(sub="ann")
    async with ByteBroker(connected_command()) as broker:
        keys = own_credentials(tmp_path) | {
            "brokerServiceURL": broker.url,
            "brokerProxyAllowedTargetPorts": "*",
            "forwardAuthorizationCredentials": str(forwards).lower(),
            "floodgateProfile": profile,
        }
        client = wire(State.INIT, parts(**keys))
        client.say(showing(shown, broker.url.removeprefix("pulsar://") if piped else None))
        if not piped:
            cnx = await client.cnx.brokers.get(client.cnx.parts.address)
            cnx.abort()
        said = (await broker.connection()).connect
        client.transport.breaks()
        await settle()
    assert (said.auth_method_name, said.auth_data) == ("token", token(sub="proxy"))
    assert said.original_principal == "ann"
    assert said.original_auth_data == (shown.decode() if forwards else "")
    assert said.original_auth_method == ("token" if forwards else "")


@pytest.mark.parametrize(
    ("forwards", "profile", "ends"),
    [(False, "floodgate", True), (True, "floodgate", False), (False, "pulsar", False)],
)
async def test_a_pipe_closes_when_unforwarded_client_credentials_expire_only_in_profile_floodgate(
    forwards: bool, profile: str, ends: bool, tmp_path: Path
) -> None:
    clock = ManualClock()
    keys = own_credentials(tmp_path) | {
        "forwardAuthorizationCredentials": str(forwards).lower(), "floodgateProfile": profile,
    }  # fmt: skip
    client = wire(State.INIT, ProxyService(proxy_config(keys), clock)._parts())

    async def opened(*_: object) -> None:
        """Pretend that the broker was found."""

    client.cnx.parts.direct_handler.open = opened
    client.say(showing(token(sub="ann", exp=int(clock.now()) + 90), "127.0.0.1:6650"))
    await settle()
    clock.advance(60)
    before = client.closed
    clock.advance(60)
    assert (before, client.closed) == (False, ends)


async def test_an_authenticated_client_that_claims_to_be_a_proxy_still_counts_as_a_single_client(
    tmp_path,
) -> None:
    client = wire(State.INIT, parts(**properties(tmp_path)))
    command = showing(token(sub="ann"))
    command.connect.proxy_version = "I am a proxy"
    client.say(command)
    # With the budgets of one client
    (answer,) = client.answers()
    assert answer.type == pb.BaseCommand.CONNECTED
    assert not client.cnx.many_clients


async def test_clients_of_the_same_role_share_a_pool_until_the_last_client_disconnects(
    tmp_path: Path,
) -> None:
    service = ProxyService(proxy_config(properties(tmp_path)))
    shared = service._parts()
    ann, too, bob = (wire(State.INIT, shared) for _ in range(3))
    for client, role in ((ann, "ann"), (too, "ann"), (bob, "bob")):
        client.say(showing(token(sub=role)))
    asks_for = [client.cnx.brokers.asks_for for client in (ann, too, bob)]
    ann.transport.breaks()
    bob.transport.breaks()
    await settle()
    assert asks_for == ["ann", "ann", "bob"]
    assert len(service.role_pools) == 1


async def test_only_clients_of_the_same_role_share_a_listing(tmp_path: Path) -> None:
    async with ByteBroker(None) as silent:
        keys = properties(tmp_path, brokerServiceURL=silent.url)
        service = ProxyService(proxy_config(keys))
        shared = service._parts()
        clients = [wire(State.INIT, shared) for _ in range(3)]
        listing = pb.BaseCommand(type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE)
        listing.getTopicsOfNamespace.request_id = 1
        listing.getTopicsOfNamespace.namespace = "public/default"
        for client, role in zip(clients, ("ann", "ann", "bob"), strict=True):
            client.say(showing(token(sub=role)))
            client.say(listing)
        flights = len(service.flights)
        for client in clients:
            client.transport.breaks()
        await settle()
    assert flights == 2


async def test_refreshed_credentials_of_another_role_close_the_connection(tmp_path: Path) -> None:
    client = wire(State.INIT, parts(**properties(tmp_path)))
    client.say(showing(token(sub="ann")))
    client.answers()
    fresh = pb.BaseCommand(type=pb.BaseCommand.AUTH_RESPONSE)
    fresh.authResponse.response.auth_method_name = "token"
    fresh.authResponse.response.auth_data = token(sub="ann")
    client.say(fresh)
    good = client.closed
    fresh.authResponse.response.auth_data = token(sub="bob")
    client.say(fresh)
    assert (good, client.closed) == (False, True)


def fresh_credentials(data: bytes) -> pb.BaseCommand:
    fresh = pb.BaseCommand(type=pb.BaseCommand.AUTH_RESPONSE)
    fresh.authResponse.response.auth_method_name = "token"
    fresh.authResponse.response.auth_data = data
    return fresh


@pytest.mark.parametrize("expired", [False, True])
async def test_a_brokers_auth_challenge_is_answered_with_the_clients_forwarded_credentials(
    expired: bool, tmp_path: Path
) -> None:
    # Credentials are passed on
    old, new = token(sub="ann", iat=1), token(sub="ann", iat=2)
    asks = pb.BaseCommand(type=pb.BaseCommand.AUTH_CHALLENGE)
    asks.authChallenge.challenge.auth_method_name = "token"
    async with ByteBroker(connected_command()) as broker:
        keys = own_credentials(tmp_path) | {
            "brokerServiceURL": broker.url, "forwardAuthorizationCredentials": "true",
        }  # fmt: skip
        client = wire(State.INIT, parts(**keys))
        command = showing(old)
        command.connect.feature_flags.supports_auth_refresh = True
        client.say(command)
        client.answers()
        session = client.cnx.session
        assert session is not None
        cnx = await client.cnx.brokers.get(client.cnx.parts.address)
        there = await broker.connection()
        if expired:
            session.principal = replace(session.principal, expires_at_ms=1)
        cnx._command_received(asks)
        cnx._command_received(asks)
        challenges = client.answers()
        client.say(fresh_credentials(new))
        answered = await there.next_command()
        cnx.abort()
        client.transport.breaks()
        await settle()
    # The client is challenged once, and only if the client's own credentials have expired
    assert [one.type for one in challenges] == [pb.BaseCommand.AUTH_CHALLENGE] * expired
    given = answered.authResponse.response
    assert (given.auth_method_name, given.auth_data) == ("token", new if expired else old)
    assert client.cnx.original is not None
    assert client.cnx.original.credentials is not None
    assert client.cnx.original.credentials.auth_data() == new

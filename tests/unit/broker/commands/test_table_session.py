from pathlib import Path

import pytest

import proto.PulsarApi_pb2 as pb
from tests.support.authentication.credentials import properties, token
from tests.support.peers.raw_peer import connect_command
from tests.support.processes.commands import Wire
from tests.unit.broker.commands.test_table import START, parts, wire


@pytest.mark.parametrize(
    ("offered", "spoken"), [(-1, -1), (0, 0), (9, 9), (20, 20), (21, 21), (99, 21)]
)
async def test_the_lower_protocol_version_of_client_and_broker_is_used(
    offered: int, spoken: int
) -> None:
    client = wire(START)
    client.say(connect_command(protocol_version=offered))
    (answer,) = client.answers()
    assert answer.connected.protocol_version == spoken
    assert client.cnx.client_version == "raw-peer"


@pytest.mark.parametrize(
    ("keys", "announced"),
    [
        ({}, True),
        ({"enableBrokerTopicListWatcher": "false"}, False),
        ({"floodgateProfile": "pulsar"}, True),
        ({"floodgateProfile": "pulsar", "enableBrokerTopicListWatcher": "false"}, False),
    ],
)
async def test_connected_announces_the_message_size_and_the_features_of_the_broker(
    keys: dict[str, str], announced: bool
) -> None:
    client = wire(START, parts(maxMessageSize="1234", **keys))
    client.say(connect_command())
    (answer,) = client.answers()
    flags = answer.connected.feature_flags
    assert answer.connected.max_message_size == 1_234
    assert flags.supports_topic_watchers is announced
    assert flags.supports_topic_watcher_reconcile is announced
    assert flags.supports_get_partitioned_metadata_without_auto_creation
    assert flags.supports_repl_dedup_by_lid_and_eid


def authenticating(folder: Path, **keys: str) -> Wire:
    return wire(START, parts(**properties(folder, **keys)))


def showing(data: bytes) -> pb.BaseCommand:
    command = connect_command()
    command.connect.auth_method_name = "token"
    command.connect.auth_data = data
    return command


def fresh(data: bytes) -> pb.BaseCommand:
    command = pb.BaseCommand(type=pb.BaseCommand.AUTH_RESPONSE)
    command.authResponse.response.auth_method_name = "token"
    command.authResponse.response.auth_data = data
    return command


async def test_a_client_with_valid_credentials_has_a_session(tmp_path: Path) -> None:
    client = authenticating(tmp_path)
    client.say(showing(token(sub="ann")))
    (answer,) = client.answers()
    assert answer.type == pb.BaseCommand.CONNECTED
    assert client.cnx.session.checked_roles == ("ann",)


async def test_a_client_without_credentials_is_refused_and_closed(tmp_path: Path) -> None:
    client = authenticating(tmp_path)
    client.say(connect_command())
    (answer,) = client.answers()
    assert answer.error.request_id == 2**64 - 1
    assert answer.error.error == pb.AuthenticationError
    assert answer.error.message == "Failed to authenticate"
    assert client.closed
    assert (client.cnx.session, client.cnx.parts.counters.create_fail) == (None, 1)


@pytest.mark.parametrize(
    ("role", "roles", "believed"),
    [("ann", "", True), ("ann", "gate", False), ("gate", "gate", True)],
)
async def test_a_proxy_needs_a_proxy_role_where_proxy_roles_are_configured(
    tmp_path, role, roles, believed
) -> None:
    # No authorization: the broker serves the remaining credentials, too, as recorded
    client = authenticating(tmp_path, proxyRoles=roles)
    command = showing(token(sub=role))
    command.connect.proxy_version = "4.2.4"
    client.say(command)
    (answer,) = client.answers()
    assert answer.type == pb.BaseCommand.CONNECTED
    assert client.cnx.many_clients is believed


async def test_a_command_after_a_refused_connect_is_ignored(tmp_path: Path) -> None:
    client = authenticating(tmp_path)
    client.say(connect_command())
    client.say(showing(token(sub="ann")))
    assert [answer.type for answer in client.answers()] == [pb.BaseCommand.ERROR]


async def test_refreshed_credentials_are_checked_and_invalid_credentials_close(tmp_path) -> None:
    client = authenticating(tmp_path)
    client.say(showing(token(sub="ann")))
    client.answers()
    client.say(fresh(token(sub="ann")))
    good = client.answers()
    client.say(fresh(b"garbage"))
    (bad,) = client.answers()
    assert (good, bad.error.error, client.closed) == ([], pb.AuthenticationError, True)


async def test_a_connection_has_no_session_while_authentication_is_off() -> None:
    client = wire(START)
    client.say(showing(b"anything"))
    assert client.answers()[0].type == pb.BaseCommand.CONNECTED
    assert (client.cnx.session, client.cnx.refresh) == (None, None)

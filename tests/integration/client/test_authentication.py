"""Credentials on the wire: shown at CONNECT, and again whenever the server asks."""

import pytest

import proto.PulsarApi_pb2 as pb
from client.authentication.authentication import AuthenticationBasic, AuthenticationToken
from client.client import Client
from client.exceptions import AuthenticationError, ErrorGettingAuthenticationData
from tests.support.clocks.settle import started
from tests.support.peers.byte_broker import (
    GREETING_BYTES,
    ByteBroker,
    ByteBrokerConnection,
    connected_command,
)
from tests.support.peers.frames import frame

CHALLENGE = pb.BaseCommand(
    type=pb.BaseCommand.AUTH_CHALLENGE, authChallenge=pb.CommandAuthChallenge(server_version="x")
)


async def next_command(connection: ByteBrokerConnection) -> pb.BaseCommand:
    size = int.from_bytes(await connection.reader.readexactly(GREETING_BYTES), "big")
    body = await connection.reader.readexactly(size)
    return pb.BaseCommand.FromString(body[GREETING_BYTES:])


async def test_each_auth_challenge_during_a_request_is_answered_with_a_fresh_token() -> None:
    tokens = iter(["first", "second", "third"])
    async with ByteBroker(connected_command()) as broker:
        client = Client(broker.url, AuthenticationToken(lambda: next(tokens)))
        asking = await started(client.partitions("topic"))
        connection = await broker.connection()
        question = await next_command(connection)
        shown = [connection.connect.auth_data]
        for _ in range(2):
            connection.writer.write(frame(CHALLENGE))
            answer = await next_command(connection)
            shown.append(answer.authResponse.response.auth_data)
            assert answer.authResponse.response.auth_method_name == "token"
        connection.writer.write(
            frame(
                pb.BaseCommand(
                    type=pb.BaseCommand.PARTITIONED_METADATA_RESPONSE,
                    partitionMetadataResponse=pb.CommandPartitionedTopicMetadataResponse(
                        request_id=question.partitionMetadata.request_id, partitions=3
                    ),
                )
            )
        )
        assert await asking == 3
        assert shown == [b"first", b"second", b"third"]
        await client.close()


async def test_refused_credentials_raise_an_authentication_error() -> None:
    refusal = pb.BaseCommand(
        type=pb.BaseCommand.ERROR,
        error=pb.CommandError(request_id=-1 % 2**64, error=pb.AuthenticationError, message="no"),
    )
    async with (
        ByteBroker(refusal) as broker,
        Client(broker.url, AuthenticationBasic("me", "x")) as client,
    ):
        with pytest.raises(AuthenticationError, match="no"):
            await client.create_producer("topic")
        connect = (await broker.connection()).connect
        assert (connect.auth_method_name, connect.auth_data) == ("basic", b"me:x")


async def test_an_unreadable_token_raises_error_getting_authentication_data() -> None:
    async with (
        ByteBroker(connected_command()) as broker,
        Client(broker.url, AuthenticationToken("file:///not/there")) as client,
    ):
        with pytest.raises(ErrorGettingAuthenticationData, match="cannot be read"):
            await client.create_producer("topic")

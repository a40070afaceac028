"""A connection of the client library: handshake, requests, answers and end."""

from __future__ import annotations

import asyncio

import pytest

import proto.PulsarApi_pb2 as pb
from client.connection.cnx import ClientCnx, ClientCnxState
from client.connection.connect_options import ConnectOptions
from client.connection.errors import (
    AnswerDeclinedError,
    AnswerTooLargeError,
    DisconnectedError,
    RequestTimeoutError,
    RequestTooLargeError,
    TooManyPendingRequestsError,
)
from client.exceptions import (
    ConnectError,
    ErrorGettingAuthenticationData,
    PulsarException,
    ServerResponseError,
)
from proto.errors import RemoteProtocolError
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started
from tests.support.peers.frames import frame, ping
from tests.support.peers.raw_peer import lookup_command, topics_command
from tests.support.processes.cluster import no_errors_logged, topic_names
from tests.support.processes.commands import TYPES, Wire, complete_command, type_name

Type = pb.BaseCommand
NAMES = topic_names("tenant/ns", 100, 60)


class Server:
    """The far end of a client's connection, played by the test."""

    def __init__(self, clock: ManualClock | None = None, **options: object) -> None:
        self.clock = clock or ManualClock()
        credentials = options.get("credentials")
        data = b"" if credentials is None else credentials.auth_data()
        self.cnx = ClientCnx(ConnectOptions(**options), self.clock, auth_data=data)
        self.wire = Wire(self.cnx)

    def accept(self, **fields: object) -> Server:
        """Answer CONNECT."""
        self.wire.answers()
        connected = pb.CommandConnected(server_version="test", protocol_version=21, **fields)
        self.wire.say(pb.BaseCommand(type=Type.CONNECTED, connected=connected))
        return self

    async def asked(self) -> asyncio.Task[object]:
        """Make the client request a list of topics."""
        return await started(
            self.cnx.topics_raw(topics_command(0, "tenant/ns").getTopicsOfNamespace)
        )


def listing(request_id: int, names: list[str] | None = None) -> pb.BaseCommand:
    response = pb.CommandGetTopicsOfNamespaceResponse(
        request_id=request_id, topics=NAMES if names is None else names, topics_hash="x"
    )
    kind = Type.GET_TOPICS_OF_NAMESPACE_RESPONSE
    return pb.BaseCommand(type=kind, getTopicsOfNamespaceResponse=response)


def error(request_id: int) -> pb.BaseCommand:
    refusal = pb.CommandError(request_id=request_id, error=pb.TooManyRequests, message="no")
    return pb.BaseCommand(type=Type.ERROR, error=refusal)


@pytest.fixture
async def server() -> Server:
    return Server().accept()


async def test_connect_carries_client_version_protocol_version_proxy_and_principal() -> None:
    server = Server(client_version="me", proxy_version="p", original_principal="role")
    (command,) = server.wire.answers()
    connect = command.connect
    assert (connect.client_version, connect.protocol_version) == ("me", 21)
    assert (connect.proxy_version, connect.original_principal) == ("p", "role")
    assert server.cnx.state is ClientCnxState.SENT_CONNECT_FRAME


async def test_a_request_before_the_handshake_is_refused() -> None:
    server = Server()
    with pytest.raises(DisconnectedError):
        await server.cnx.request(lambda number: lookup_command(number, "t"))


@pytest.mark.parametrize(
    ("ends", "sentence"),
    [
        (lambda server: server.wire.say(error(0)), "TooManyRequests: no"),
        (lambda server: server.clock.advance(30), "did not answer the handshake"),
        (lambda server: server.wire.transport.breaks(), "closed the connection"),
    ],
    ids=["refused", "without an answer", "connection closed"],
)
async def test_a_failed_handshake_raises_a_connect_error_and_closes_the_connection(
    ends, sentence
) -> None:
    server = Server()
    waiting = await started(server.cnx.ready())
    ends(server)
    with pytest.raises(ConnectError, match=sentence):
        await waiting
    assert server.wire.closed


async def test_answers_in_any_order_reach_their_requests(server: Server) -> None:
    first, second = await server.asked(), await server.asked()
    server.wire.say(listing(1, ["b"]))
    server.wire.say(listing(0, ["a"]))
    assert list((await first).decoded().topics) == ["a"]
    assert list((await second).decoded().topics) == ["b"]
    assert not server.cnx._pending


@pytest.mark.parametrize("chunk", [1, 5, 47, 49, 1_000_000])
async def test_a_raw_answer_is_the_same_in_any_division_of_its_bytes(
    server: Server, chunk: int
) -> None:
    asked, data = await server.asked(), frame(listing(0))
    for start in range(0, len(data), chunk):
        server.wire.transport.peer_sends(data[start : start + chunk])
    answer = await asked
    assert list(answer.decoded().topics) == NAMES
    assert b"".join(answer.addressed_to(0).buffers) == data


async def test_an_error_answer_fails_only_its_own_request(server: Server) -> None:
    failing, fine = await server.asked(), await server.asked()
    server.wire.say(error(0))
    server.wire.say(listing(1))
    with pytest.raises(ServerResponseError) as caught:
        await failing
    assert (caught.value.server_error, caught.value.message) == (pb.TooManyRequests, "no")
    assert (await fine).command_bytes > 0


async def test_a_request_times_out_and_its_late_answer_is_ignored() -> None:
    server = Server(operation_timeout_seconds=5).accept()
    asked = await server.asked()
    server.clock.advance(5)
    with pytest.raises(RequestTimeoutError, match="did not answer in 5 s"):
        await asked
    with no_errors_logged():
        server.wire.say(listing(0))
        server.wire.say(error(0))
    assert not server.wire.closed


async def test_a_timeout_within_a_partial_answer_closes_the_connection() -> None:
    server = Server(operation_timeout_seconds=5).accept()
    server.clock.advance(1)
    asked = await server.asked()
    server.cnx.data_received((1_000).to_bytes(4, "big") + b"half")
    server.clock.advance(5)
    with pytest.raises(RequestTimeoutError):
        await asked
    assert server.cnx.sender.closing


async def test_a_lost_connection_fails_pending_and_later_requests() -> None:
    server, lost = Server().accept(), []
    server.cnx.on_lost = lambda: lost.append(True)
    asked = [await server.asked() for _ in range(3)]
    server.wire.transport.breaks()
    for task in asked:
        with pytest.raises(DisconnectedError, match=r"Disconnected from server at 192\.0\.2\.1"):
            await task
    assert lost == [True]
    too_late = await server.asked()
    with pytest.raises(DisconnectedError):
        await too_late


async def test_a_cancelled_request_is_no_longer_pending(server: Server) -> None:
    asked = await server.asked()
    asked.cancel()
    await settle()
    assert not server.cnx._pending


async def test_a_request_above_the_limit_of_pending_requests_is_refused() -> None:
    server = Server(max_pending_requests=2).accept()
    asked = [await server.asked() for _ in range(2)]
    with pytest.raises(TooManyPendingRequestsError, match="2 requests"):
        await (await server.asked())
    server.wire.say(listing(0))
    server.wire.say(listing(1))
    assert all([await task for task in asked])


@pytest.mark.parametrize("chunk", [50, 1_000_000])
async def test_a_declined_answer_is_drained_and_the_next_answer_is_read(chunk: int) -> None:
    server, sizes = Server().accept(), []
    request = topics_command(0, "tenant/ns").getTopicsOfNamespace
    declined = await started(
        server.cnx.topics_raw(request, lambda size: sizes.append(size) or False)
    )
    fine = await server.asked()
    data = frame(listing(0)) + frame(listing(1))
    for start in range(0, len(data), chunk):
        server.wire.transport.peer_sends(data[start : start + chunk])
    with pytest.raises(AnswerDeclinedError) as caught:
        await declined
    assert caught.value.total_size == len(frame(listing(0))) - 4
    assert sizes == [caught.value.total_size]
    assert list((await fine).decoded().topics) == NAMES


async def test_the_answer_to_a_cancelled_request_is_drained(server: Server) -> None:
    asked = await server.asked()
    asked.cancel()
    await settle()
    data = frame(listing(0))
    server.wire.transport.peer_sends(data[:100])
    assert server.cnx.decoder.buffered_bytes == 0
    server.wire.transport.peer_sends(data[100:])
    assert not server.wire.closed


@pytest.mark.parametrize("drains", [True, False])
async def test_an_answer_above_the_frame_limit_fails_its_request_or_closes_the_connection(
    drains,
) -> None:
    server = Server(drain_oversized=drains).accept(max_message_size=2_000)
    big = topic_names("tenant/ns", 300, 60)
    asked = await server.asked()
    server.wire.say(listing(0, big))
    await settle()
    expected = AnswerTooLargeError if drains else DisconnectedError
    with pytest.raises(expected):
        await asked
    assert server.wire.closed is not drains


@pytest.mark.parametrize("drains", [True, False])
async def test_a_request_above_the_frame_limit_is_not_sent_on_a_shared_connection(
    drains: bool,
) -> None:
    server = Server(drain_oversized=drains).accept(max_message_size=2_000)
    asked = await started(server.cnx.request(lambda number: lookup_command(number, "t" * 2_000)))
    if drains:
        with pytest.raises(RequestTooLargeError, match="larger than 2000 bytes"):
            await asked
        assert not server.cnx._pending
    sent = server.wire.answers()
    assert len(sent) == (0 if drains else 1)
    asked.cancel()


async def test_a_ping_is_answered_with_a_pong(server: Server) -> None:
    server.wire.say(ping())
    assert [answer.type for answer in server.wire.answers()] == [Type.PONG]


async def test_a_decoded_answer_to_a_raw_request_is_a_protocol_error(server: Server) -> None:
    asked = await server.asked()
    lookup = pb.CommandLookupTopicResponse(request_id=0)
    server.wire.say(pb.BaseCommand(type=Type.LOOKUP_RESPONSE, lookupTopicResponse=lookup))
    with pytest.raises(RemoteProtocolError):
        await asked


async def test_each_command_of_a_server_is_handled_and_every_other_closes_the_connection() -> None:
    answers = [
        Type.CONNECTED,
        Type.LOOKUP_RESPONSE,
        Type.PARTITIONED_METADATA_RESPONSE,
        Type.GET_TOPICS_OF_NAMESPACE_RESPONSE,
        Type.GET_SCHEMA_RESPONSE,
        Type.GET_LAST_MESSAGE_ID_RESPONSE,
        Type.CONSUMER_STATS_RESPONSE,
        Type.ACK_RESPONSE,
        Type.PRODUCER_SUCCESS,
        Type.SEND_RECEIPT,
        Type.SEND_ERROR,
        Type.MESSAGE,
        Type.CLOSE_PRODUCER,
        Type.CLOSE_CONSUMER,
        Type.ACTIVE_CONSUMER_CHANGE,
        Type.REACHED_END_OF_TOPIC,
        Type.WATCH_TOPIC_LIST_SUCCESS,
        Type.WATCH_TOPIC_UPDATE,
        Type.SUCCESS,
        Type.ERROR,
        Type.PING,
        Type.PONG,
    ]
    closed = {}
    with no_errors_logged():
        for kind in TYPES:
            server = Server().accept()
            server.wire.say(complete_command(kind))
            closed[kind] = server.wire.closed
    taken = sorted(kind for kind, ended in closed.items() if not ended)
    assert taken == sorted(answers), [type_name(kind) for kind in taken]


class Token:
    """Credentials that change at every reading."""

    method_name = "token"

    def __init__(self) -> None:
        self.asked = 0

    def auth_data(self) -> bytes:
        self.asked += 1
        return b"word %d" % self.asked


async def test_credentials_are_sent_in_connect_and_read_anew_for_a_challenge() -> None:
    server = Server(credentials=Token())
    (connect,) = server.wire.answers()
    server.accept()
    challenge = pb.CommandAuthChallenge(server_version="x")
    server.wire.say(pb.BaseCommand(type=Type.AUTH_CHALLENGE, authChallenge=challenge))
    await server.cnx._showing
    (answer,) = server.wire.answers()
    assert (connect.connect.auth_method_name, connect.connect.auth_data) == ("token", b"word 1")
    shown = answer.authResponse.response
    assert (shown.auth_method_name, shown.auth_data) == ("token", b"word 2")


class NoToken(Token):
    """Credentials that fail after a number of readings."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def auth_data(self) -> bytes:
        if self.asked == self.times:
            raise ErrorGettingAuthenticationData("no word")
        return super().auth_data()


async def test_a_challenge_whose_credentials_fail_closes_the_connection(caplog) -> None:
    server = Server(credentials=NoToken(1)).accept()
    challenge = pb.CommandAuthChallenge(server_version="x")
    server.wire.say(pb.BaseCommand(type=Type.AUTH_CHALLENGE, authChallenge=challenge))
    await server.cnx._showing
    assert server.wire.closed
    assert "which asks for new credentials: no word" in caplog.text


async def test_a_challenge_without_credentials_closes_the_connection(server: Server) -> None:
    challenge = pb.CommandAuthChallenge(server_version="x")
    server.wire.say(pb.BaseCommand(type=Type.AUTH_CHALLENGE, authChallenge=challenge))
    assert server.wire.closed


@pytest.mark.parametrize("code", [pb.AuthenticationError, pb.AuthorizationError])
async def test_refused_credentials_raise_a_handshake_error_with_the_servers_code(code) -> None:
    server = Server(credentials=Token())
    waiting = await started(server.cnx.ready())
    refusal = pb.CommandError(request_id=0, error=code, message="no")
    server.wire.say(pb.BaseCommand(type=Type.ERROR, error=refusal))
    with pytest.raises(ServerResponseError, match="no") as caught:
        await waiting
    assert caught.value.server_error == code
    assert caught.value.at_handshake


async def test_an_exclusive_producer_is_answered_when_queued_and_when_ready(server: Server) -> None:
    cnx = server.cnx
    asked = await started(cnx.request(producer_command))
    server.wire.say(producer_success(ready=False))
    first = (await asked).producer_success
    turn = cnx.exclusive_turns[first.request_id]
    server.wire.say(producer_success(ready=True))
    assert not first.producer_ready
    assert (await turn).producer_ready
    assert not cnx.exclusive_turns


@pytest.mark.parametrize("ends", ["refused", "lost"])
async def test_a_queued_exclusive_producer_fails_on_a_refusal_or_a_lost_connection(
    ends: str,
) -> None:
    server = Server().accept()
    cnx = server.cnx
    asked = await started(cnx.request(producer_command))
    server.wire.say(producer_success(ready=False))
    turn = cnx.exclusive_turns[(await asked).producer_success.request_id]
    if ends == "refused":
        server.wire.say(error(0))
    else:
        server.wire.transport.breaks()
    with pytest.raises(PulsarException):
        await turn
    assert not cnx.exclusive_turns


async def test_a_request_is_sent_after_the_messages_written_in_the_same_turn(
    server: Server,
) -> None:
    server.wire.answers()
    server.cnx.turn_writer.add(frame(ping()))
    asked = await started(server.cnx.request(lambda number: lookup_command(number, "t")))
    assert [one.type for one in server.wire.answers()] == [Type.PING, Type.LOOKUP]
    asked.cancel()


def producer_command(request_id: int) -> pb.BaseCommand:
    command = pb.CommandProducer(topic="t", producer_id=1, request_id=request_id)
    return pb.BaseCommand(type=Type.PRODUCER, producer=command)


def producer_success(*, ready: bool) -> pb.BaseCommand:
    success = pb.CommandProducerSuccess(request_id=0, producer_name="p", producer_ready=ready)
    return pb.BaseCommand(type=Type.PRODUCER_SUCCESS, producer_success=success)

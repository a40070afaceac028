"""Connections without timely CONNECT are closed; excessive request rates are refused."""

import logging
import struct

import pytest

from proto.frames import LENGTH_FIELD_BYTES, encode_command
from server.limits.clients import REQUESTS, ClientLimits
from server.limits.connections import ConnectionBounds, ConnectionLimits, Limit
from server.limits.unfinished_frames import COUNTED_BYTES, UnfinishedFrames
from tests.support.processes.commands import complete_command
from tests.unit.server.connection.test_served_connection import PING, Kind, Served, State

MEGABYTE = 1024 * 1024
HALF_FRAME = struct.pack(">I", MEGABYTE) + PING[LENGTH_FIELD_BYTES:]
"""The beginning of a PING with a megabyte behind."""


def served(limits: ClientLimits) -> Served:
    return Served(limits=limits, pauses=False)


def asks(found: Served, kind: int) -> None:
    found.peer.peer_sends(encode_command(complete_command(kind)))


async def test_a_connection_without_connect_in_time_receives_an_error_and_is_closed() -> None:
    limits = ClientLimits(handshake_seconds=10.0)
    found = served(limits)
    found.cnx.state = State.GREETING
    await found.passes(9.9)
    was_closed = found.cnx.sender.closing
    await found.passes(0.2)
    assert not was_closed
    assert found.cnx.sender.closing
    assert b"no CONNECT came within 10 s (floodgateHandshakeTimeoutMs)" in found.takes()
    assert limits.refusals.counts[Limit.HANDSHAKE] == 1


async def test_after_connect_the_handshake_timeout_does_not_apply() -> None:
    limits = ClientLimits(handshake_seconds=10.0)
    found = served(limits)
    await found.passes(11.0)
    assert not found.cnx.sender.closing
    assert limits.refusals.counts[Limit.HANDSHAKE] == 0


async def test_a_connection_beyond_the_limit_receives_an_error_and_is_closed() -> None:
    limits = ClientLimits(ConnectionLimits(ConnectionBounds(most=1)))
    first = served(limits)
    second = served(limits)
    assert not first.cnx.sender.closing
    assert second.cnx.sender.closing
    assert b"Reached the maximum number of connections" in second.takes()


@pytest.mark.parametrize("kind", sorted(REQUESTS), ids=Kind.Type.Name)
async def test_a_request_beyond_the_rate_is_refused_with_its_own_response(kind: int) -> None:
    limits = ClientLimits(requests_a_second=1)
    found = served(limits)
    for _ in range(2):
        asks(found, kind)
    found.takes()
    asks(found, kind)
    assert found.cnx.commands == [kind, kind]
    assert limits.refusals.counts[Limit.REQUEST_RATE] == 1
    assert b"requests a second of one connection" in found.takes()
    await found.passes(1.0)
    asks(found, kind)
    assert found.cnx.commands == [kind] * 3


async def test_the_request_rate_does_not_apply_to_a_proxy() -> None:
    found = served(ClientLimits(requests_a_second=1))
    found.cnx.stands_for_many()
    for _ in range(20):
        asks(found, Kind.LOOKUP)
    assert len(found.cnx.commands) == 20


async def test_commands_that_release_resources_are_never_refused() -> None:
    assert not REQUESTS & {Kind.CLOSE_PRODUCER, Kind.CLOSE_CONSUMER, Kind.WATCH_TOPIC_LIST_CLOSE,
                           Kind.UNSUBSCRIBE, Kind.ACK, Kind.FLOW, Kind.SEND}  # fmt: skip


def receiving(limits: ClientLimits, size_bytes: int) -> Served:
    """Return a connection that has received part of a frame of a megabyte, length included."""
    found = served(limits)
    found.cnx.decoder.max_message_bytes = MEGABYTE
    found.peer.peer_sends((HALF_FRAME + bytes(MEGABYTE))[:size_bytes])
    return found


async def test_small_parts_of_unfinished_frames_are_not_counted() -> None:
    limits = ClientLimits()
    found = receiving(limits, COUNTED_BYTES + LENGTH_FIELD_BYTES)
    uncounted = limits.unfinished.kept_bytes
    found.peer.peer_sends(b"x")
    assert uncounted == 0
    assert limits.unfinished.kept_bytes == COUNTED_BYTES + 1


async def test_a_completed_frame_is_no_longer_counted() -> None:
    limits = ClientLimits()
    found = receiving(limits, MEGABYTE // 2)
    found.peer.peer_sends(bytes(MEGABYTE - MEGABYTE // 2 + LENGTH_FIELD_BYTES))
    assert found.cnx.commands == [Kind.PING]
    assert limits.unfinished.kept_bytes == 0
    assert found.cnx.tells_from_bytes == COUNTED_BYTES


async def test_complete_frames_waiting_for_their_turn_are_not_counted_as_unfinished() -> None:
    limits = ClientLimits()
    found = served(limits)
    # More than a turn's, and a last frame lacking a byte
    found.peer.peer_sends((PING * (2 * COUNTED_BYTES // len(PING)))[:-1])
    assert found.cnx.decoder.buffered_bytes > COUNTED_BYTES
    assert limits.unfinished.kept_bytes == 0


async def test_a_lost_connection_is_no_longer_counted() -> None:
    limits = ClientLimits()
    found = receiving(limits, MEGABYTE)
    found.peer.breaks()
    assert limits.unfinished.kept_bytes == 0


async def test_the_oldest_unfinished_frame_beyond_the_limit_is_closed_and_logged_with_the_key(
    caplog,
) -> None:
    limits = ClientLimits(unfinished=UnfinishedFrames(2 * MEGABYTE))
    first, second = (receiving(limits, MEGABYTE) for _ in range(2))
    third = receiving(limits, MEGABYTE)
    assert first.cnx.sender.closing
    assert first.cnx.decoder.buffered_bytes == 0
    assert not second.cnx.sender.closing
    assert not third.cnx.sender.closing
    assert limits.unfinished.kept_bytes == 2 * (MEGABYTE - LENGTH_FIELD_BYTES)
    (sentence,) = (one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING)
    assert sentence == (
        f"closing {first.cnx.peer}: a frame of which 1048572 bytes came has not ended, and is the "
        "oldest of those that together keep more than 2 MB (floodgateMaxUnfinishedFramesMB)"
    )

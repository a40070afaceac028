"""Frames handled, parked and left unread by a paused connection; and the pace afterwards."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from limiter.flow.causes import PauseCause
from limiter.flow.flow_control import CooldownRules
from limiter.flow.outbound_buffer import WriteBufferMarks
from proto.transport.frame_intake import MAX_PARKED_BYTES, MAX_PARKED_FRAMES
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.peers.controlled_peer import (
    LINKS,
    PING_FRAME,
    PING_ID,
    ControlledPeer,
    Flow,
    Link,
    WatchedConnection,
    controlled_peer,
    lookup_frames,
    success_frames,
)

PLAIN, TLS = (link for link in LINKS if not link.sockets)
BOTH = pytest.mark.parametrize("link", [PLAIN, TLS], ids=lambda link: link.name)
ANSWER_BYTES = 2_000
MARKS = WriteBufferMarks(high_bytes=1_000, low_bytes=500)
PARKING, SHIPPED = Flow(MARKS, parks=True), Flow(MARKS)
COOLDOWN = CooldownRules(permits=5, period_seconds=0.010, window_seconds=5.0)


@asynccontextmanager
async def paused(link: Link, flow: Flow) -> AsyncIterator[tuple[WatchedConnection, ControlledPeer]]:
    """Connect a peer with an unread answer, so that handling is paused."""
    async with controlled_peer(link, flow) as (connection, peer):
        connection.queue("answer", bytes(ANSWER_BYTES))
        assert not connection.gate.open
        yield connection, peer


async def read_answer(peer: ControlledPeer) -> None:
    await peer.reads(ANSWER_BYTES)
    await settle()


def reads(connection: WatchedConnection) -> bool:
    """Tell whether the socket is read."""
    assert connection.sender.transport is not None
    return connection.sender.transport.is_reading()


# -- parked and overtaken -------------------------------------------------------------------------


@BOTH
async def test_a_ping_overtakes_parked_lookups(link: Link) -> None:
    async with paused(link, PARKING) as (connection, peer):
        await peer.sends(lookup_frames(1, 2) + PING_FRAME + lookup_frames(3) + PING_FRAME)
        while_paused = list(connection.taken)
        await read_answer(peer)
        assert while_paused == [PING_ID, PING_ID]
        assert connection.taken == [PING_ID, PING_ID, 1, 2, 3]


@BOTH
async def test_in_profile_pulsar_a_paused_connection_is_not_read_and_no_frame_overtakes(
    link: Link,
) -> None:
    async with paused(link, SHIPPED) as (connection, peer):
        await peer.sends(lookup_frames(1) + PING_FRAME)
        while_paused = list(connection.taken), reads(connection)
        await read_answer(peer)
        assert while_paused == ([], False)
        assert connection.taken == [1, PING_ID]


@BOTH
async def test_no_frame_overtakes_a_frame_of_a_different_kind(link: Link) -> None:
    async with paused(link, PARKING) as (connection, peer):
        await peer.sends(lookup_frames(1) + success_frames(2) + PING_FRAME)
        while_paused = list(connection.taken), reads(connection)
        await read_answer(peer)
        assert while_paused == ([], False)
        assert connection.taken == [1, 2, PING_ID]
        assert reads(connection)


async def test_after_a_frame_of_a_different_kind_is_handled_the_next_pause_parks_again() -> None:
    async with paused(PLAIN, PARKING) as (connection, peer):
        await peer.sends(lookup_frames(1) + success_frames(2))
        await read_answer(peer)
        connection.queue("second answer", bytes(ANSWER_BYTES))
        await peer.sends(lookup_frames(3) + PING_FRAME)
        assert connection.taken == [1, 2, PING_ID]


@pytest.mark.parametrize(("parked", "overtakes"), [(255, True), (256, False)])
async def test_a_bounded_number_of_frames_is_parked_and_reading_stops_at_the_bound(
    parked: int, overtakes: bool
) -> None:
    async with paused(PLAIN, PARKING) as (connection, peer):
        ids = list(range(1, parked + 1))
        await peer.sends(lookup_frames(*ids))
        await peer.sends(PING_FRAME)
        assert parked <= MAX_PARKED_FRAMES
        assert (connection.taken, reads(connection)) == ([PING_ID] * overtakes, overtakes)
        assert connection.flow_totals.parked_frames == parked
        await read_answer(peer)
        assert sorted(connection.taken) == [PING_ID, *ids]


async def test_a_bounded_number_of_bytes_is_buffered_and_reading_stops_at_the_bound() -> None:
    async with paused(PLAIN, PARKING) as (connection, peer):
        # Given a frame of another kind, partly received
        large = success_frames(1)[:4] + bytes(1)
        large = (MAX_PARKED_BYTES + 10).to_bytes(4, "big") + large[4:]
        await peer.sends(large + bytes(MAX_PARKED_BYTES - len(large) + 3))
        before_the_bound = reads(connection)
        await peer.sends(bytes(1))
        assert (before_the_bound, reads(connection)) == (True, False)


@BOTH
async def test_parked_frames_are_handled_in_order_of_arrival(link: Link) -> None:
    async with paused(link, PARKING) as (connection, peer):
        # When the bytes arrive singly
        for byte in lookup_frames(*range(1, 11)) + success_frames(11):
            await peer.sends(bytes([byte]))
        await peer.sends(lookup_frames(12))
        await read_answer(peer)
        assert connection.taken == list(range(1, 13))


async def test_parked_frames_are_counted_until_handled() -> None:
    async with paused(PLAIN, PARKING) as (connection, peer):
        await peer.sends(lookup_frames(1, 2, 3))
        totals = connection.flow_totals
        counted = totals.parked_frames, totals.parked_bytes
        await read_answer(peer)
        assert counted == (3, len(lookup_frames(1, 2, 3)) - 3 * 4)
        assert (totals.parked_frames, totals.parked_bytes) == (0, 0)


async def test_parked_frames_of_a_lost_peer_are_forgotten() -> None:
    async with paused(PLAIN, PARKING) as (connection, peer):
        await peer.sends(lookup_frames(1, 2))
        peer.resets()
        await settle()
        totals = connection.flow_totals
        assert (connection.taken, len(connection.intake)) == ([], 0)
        assert (totals.parked_frames, totals.parked_bytes) == (0, 0)
        assert set(totals.connections.values()) == {0}


async def test_a_pause_while_parked_frames_are_handled_stops_between_frames() -> None:
    async with paused(PLAIN, PARKING) as (connection, peer):
        connection.on_frame = lambda number: connection.queue(str(number), bytes(ANSWER_BYTES))
        await peer.sends(lookup_frames(1, 2, 3))
        for number in (1, 2, 3):
            await read_answer(peer)
            assert connection.taken == list(range(1, number + 1))
            await peer.sends(PING_FRAME)
            assert connection.taken.pop() == PING_ID


# -- the cooldown ---------------------------------------------------------------------------------


@asynccontextmanager
async def resumed(
    rules: CooldownRules = COOLDOWN,
) -> AsyncIterator[tuple[WatchedConnection, ControlledPeer, ManualClock]]:
    """Connect a peer that was paused and has just read the answer."""
    clock = ManualClock()
    flow = replace(SHIPPED, cooldown=rules, clock=clock)
    async with paused(PLAIN, flow) as (connection, peer):
        await read_answer(peer)
        assert connection.gate.open
        yield connection, peer, clock


async def test_after_a_resume_each_period_allows_its_permits_and_a_single_command_more() -> None:
    async with resumed() as (connection, peer, clock):
        await peer.sends(lookup_frames(*range(1, 101)))
        first = len(connection.taken)
        clock.advance(0.0099)
        await settle()
        too_early = len(connection.taken)
        clock.advance(0.0002)
        await settle()
        assert (first, too_early, len(connection.taken)) == (6, 6, 12)
        assert connection.gate.is_closed_for(PauseCause.COOLDOWN)


async def test_pings_are_not_counted_by_the_cooldown() -> None:
    async with resumed() as (connection, peer, _):
        await peer.sends(PING_FRAME * 50 + lookup_frames(1, 2, 3, 4, 5))
        assert len(connection.taken) == 55
        assert connection.gate.open


@pytest.mark.parametrize(("seconds", "taken"), [(5.0, 6), (5.001, 100)])
async def test_after_the_window_commands_are_not_limited(seconds: float, taken: int) -> None:
    async with resumed() as (connection, peer, clock):
        clock.advance(seconds)
        await peer.sends(lookup_frames(*range(1, 101)))
        assert len(connection.taken) == taken


async def test_each_resume_restarts_the_window() -> None:
    async with resumed() as (connection, peer, clock):
        clock.advance(4.0)
        connection.queue("second answer", bytes(ANSWER_BYTES))
        clock.advance(1.0)
        await read_answer(peer)
        # When the first window would be over
        clock.advance(4.0)
        await peer.sends(lookup_frames(*range(1, 101)))
        assert len(connection.taken) == 6


async def test_before_the_first_pause_commands_are_not_limited() -> None:
    async with controlled_peer(PLAIN, replace(SHIPPED, cooldown=COOLDOWN)) as (connection, peer):
        await peer.sends(lookup_frames(*range(1, 101)))
        assert len(connection.taken) == 100


async def test_a_cooldown_without_a_window_does_not_limit() -> None:
    async with resumed(CooldownRules(window_seconds=0)) as (connection, peer, _):
        await peer.sends(lookup_frames(*range(1, 101)))
        assert len(connection.taken) == 100


async def test_a_peer_lost_during_the_cooldown_leaves_no_timer_and_no_pause_count() -> None:
    async with resumed() as (connection, peer, clock):
        await peer.sends(lookup_frames(*range(1, 101)))
        peer.resets()
        await settle()
        assert len(connection.taken) == 6
        assert [timer for *_, timer in clock._timers if not timer.cancelled] == []
        assert set(connection.flow_totals.connections.values()) == {0}

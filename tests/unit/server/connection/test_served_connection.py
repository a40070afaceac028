"""A client's connection is probed for liveness, paused, and closed in time."""

from enum import Enum

import pytest

import proto.PulsarApi_pb2 as pb
from limiter.flow.causes import CloseReason, PauseCause
from limiter.flow.flow_control import CooldownRules, FlowRules
from limiter.flow.outbound_buffer import OutboundTotals, WriteBufferMarks
from limiter.flow.totals import FlowTotals
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, MemoryLimit
from limiter.slow_peers.eviction import SlowPeers
from limiter.slow_peers.peer import WORTHY_BYTES, SlowPeerRules
from proto.frames import encode_command
from proto.transport.process_flow import ProcessFlow
from server.connection.command_table import CommandTable, Row
from server.connection.flow_parts import FLOODGATE_RULES, PULSAR_RULES, FlowParts
from server.connection.served_connection import ServedConnection
from server.limits.clients import ClientLimits
from tests.support.clocks.counting_clock import CountingClock
from tests.support.clocks.settle import settle
from tests.support.peers.memory_transport import MemoryTransport
from tests.support.processes.commands import TYPES, complete_command

Kind = pb.BaseCommand
PING, PONG = (encode_command(complete_command(kind)) for kind in (Kind.PING, Kind.PONG))
LOOKUP, SEND = (encode_command(complete_command(kind)) for kind in (Kind.LOOKUP, Kind.SEND))
ANSWER = bytes(2_000)
BOTH = pytest.mark.parametrize("as_shipped", [False, True], ids=["floodgate", "pulsar"])


class State(Enum):
    """True once the handshake is finished."""

    GREETING = "greeting"
    READY = "ready"


class Client(ServedConnection):
    """A connection that records calls."""

    def __init__(self, flow: FlowParts) -> None:
        super().__init__(flow, COMMANDS, 10_000)
        self.commands: list[int] = []
        self.state = State.READY


def note(cnx: Client, command: pb.BaseCommand) -> None:
    """Handle any command."""
    cnx.commands.append(command.type)
    if command.type == Kind.PING:
        cnx.answer_ping()


COMMANDS = CommandTable([Row(kind, note, State) for kind in TYPES], (State.GREETING,))


class Served:
    """A client over a transport without a socket, and the process."""

    def __init__(
        self,
        *,
        as_shipped: bool = False,
        pauses: bool = True,
        keep_alive_seconds: float = 30.0,
        limits: ClientLimits | None = None,
    ) -> None:
        self.clock = CountingClock()
        self.totals = FlowTotals(self.clock, OutboundTotals())
        limit = MemoryLimit(1_000, 10, 25.0)
        self.limiter = AsyncDualMemoryLimiter(limit, limit, self.clock)
        rules = SlowPeerRules(0, 0, 0) if as_shipped else SlowPeerRules(3.0, 0, 0)
        self.slow_peers = SlowPeers(self.limiter, rules, self.totals, self.clock)
        marks = WriteBufferMarks(1_000, 500)
        self.cnx = Client(
            FlowParts(
                clock=self.clock,
                rules=FlowRules(marks, pauses, CooldownRules(), 100_000),
                keep_alive_seconds=keep_alive_seconds,
                connection_rules=PULSAR_RULES if as_shipped else FLOODGATE_RULES,
                process=ProcessFlow(self.totals.outbound, self.totals, parks_frames=not as_shipped),
                totals=self.totals,
                slow_peers=self.slow_peers,
                limits=limits or ClientLimits(),
            )
        )
        self.peer = MemoryTransport(self.cnx).connect()

    async def passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await settle()

    def answers(self) -> None:
        """Make the peer read everything and answer a PING."""
        self.takes()
        self.peer.peer_sends(PONG)

    def takes(self) -> bytes:
        """Make the peer read everything; return the connection."""
        self.peer.received.clear()
        while self.peer.get_write_buffer_size():
            self.peer.peer_reads(10**9)
        return bytes(self.peer.received)

    def is_paused(self) -> None:
        """Pause the connection with a non-reading peer."""
        self.cnx.enqueue([ANSWER], len(ANSWER))
        assert not self.cnx.gate.open

    async def was_paused(self) -> None:
        """Pause the connection until the peer has read everything."""
        self.is_paused()
        self.takes()
        await settle()


@pytest.fixture
async def served() -> Served:
    return Served()


# -- keep-alive -----------------------------------------------------------------------------------


@BOTH
async def test_a_peer_is_pinged_at_each_tick_and_stays_connected_while_answering(
    as_shipped: bool,
) -> None:
    served = Served(as_shipped=as_shipped)
    for _ in range(20):
        await served.passes(30.0)
        assert served.takes() == PING
        served.answers()
    assert not served.cnx.closed


@BOTH
async def test_a_peer_that_reads_but_never_answers_is_closed_at_the_second_tick(as_shipped) -> None:
    served = Served(as_shipped=as_shipped)
    await served.passes(30.0)
    served.takes()
    await served.passes(29.9)
    assert not served.cnx.closed
    await served.passes(0.2 if as_shipped else 30.2)
    assert served.cnx.closed
    assert served.totals.closed[CloseReason.KEEP_ALIVE] == 0


@BOTH
async def test_an_unfinished_handshake_is_closed_at_the_first_tick(as_shipped) -> None:
    served = Served(as_shipped=as_shipped)
    served.cnx.state = State.GREETING
    await served.passes(30.0)
    assert served.cnx.closed


async def test_in_profile_pulsar_a_paused_peer_is_never_closed_and_pinged_at_each_tick() -> None:
    served = Served(as_shipped=True)
    served.is_paused()
    await served.passes(600.0)
    assert not served.cnx.closed
    assert served.takes() == ANSWER + 20 * PING


async def test_in_profile_pulsar_an_unpaused_peer_not_reading_is_closed_at_the_second_tick() -> (
    None
):
    served = Served(as_shipped=True, pauses=False)
    served.cnx.enqueue([ANSWER], len(ANSWER))
    await served.passes(59.9)
    assert not served.cnx.closed
    await served.passes(0.2)
    assert served.cnx.closed


async def test_a_paused_peer_without_progress_is_closed_and_counted(served: Served) -> None:
    served.is_paused()
    await served.passes(60.1)
    assert served.cnx.closed
    assert served.totals.closed[CloseReason.KEEP_ALIVE] == 1
    assert set(served.totals.connections.values()) == {0}


async def test_a_paused_peer_reading_a_byte_per_tick_stays_connected(served: Served) -> None:
    served.is_paused()
    for _ in range(20):
        await served.passes(29.0)
        served.peer.peer_reads(1)
        await served.passes(1.0)
    assert not served.cnx.closed
    assert not served.cnx.gate.open


@pytest.mark.parametrize("seconds", [0.0, -1.0])
async def test_without_a_keep_alive_interval_no_peer_is_pinged(seconds: float) -> None:
    served = Served(keep_alive_seconds=seconds)
    await served.passes(3_600.0)
    assert not served.cnx.closed
    assert served.takes() == b""


# -- PING of the peer -----------------------------------------------------------------------------


@pytest.mark.parametrize(("as_shipped", "pongs"), [(False, 2), (True, 50)])
async def test_pongs_to_a_peer_that_does_not_read_pile_up_only_in_profile_pulsar(
    as_shipped: bool, pongs: int
) -> None:
    served = Served(as_shipped=as_shipped, pauses=False)
    served.cnx.enqueue([ANSWER], len(ANSWER))
    served.peer.peer_sends(PING * 49)
    taken = served.takes()
    served.peer.peer_sends(PING)
    taken += served.takes()
    assert served.cnx.commands == [Kind.PING] * 50
    assert taken == ANSWER + pongs * PONG


# -- pausing --------------------------------------------------------------------------------------


@BOTH
async def test_after_a_pause_pings_are_not_counted_by_the_cooldown_and_lookups_are(
    as_shipped: bool,
) -> None:
    served = Served(as_shipped=as_shipped)
    await served.was_paused()
    served.peer.peer_sends(PING * 6)
    after_pings = served.cnx.gate.open
    served.peer.peer_sends(LOOKUP * 20)
    assert after_pings
    assert served.cnx.commands.count(Kind.LOOKUP) == 6
    assert served.cnx.gate.is_closed_for(PauseCause.COOLDOWN)


@BOTH
async def test_a_pipe_is_paused_by_its_opposite_side_only(as_shipped: bool) -> None:
    served = Served(as_shipped=as_shipped)
    served.is_paused()
    served.cnx.becomes_pipe()
    assert served.cnx.gate.open
    served.takes()
    served.cnx.enqueue([ANSWER], len(ANSWER))
    assert not served.cnx.writable
    assert served.cnx.gate.open
    assert not served.cnx.intake.parks


@BOTH
async def test_a_pipe_is_neither_pinged_nor_closed_by_keep_alive(as_shipped: bool) -> None:
    served = Served(as_shipped=as_shipped)
    served.cnx.becomes_pipe()
    await served.passes(3_600.0)
    assert not served.cnx.closed
    assert served.takes() == b""


async def test_a_proxy_has_neither_the_response_budget_nor_the_cooldown_of_one_client() -> None:
    served = Served()
    served.cnx.stands_for_many()
    await served.was_paused()
    served.peer.peer_sends(LOOKUP * 100)
    for _ in range(3):
        served.cnx.responses.reserve(10**9)
    assert served.cnx.many_clients
    assert served.cnx.gate.open
    assert len(served.cnx.commands) == 100


async def test_in_profile_pulsar_a_proxy_has_the_cooldown_of_one_client() -> None:
    served = Served(as_shipped=True)
    served.cnx.stands_for_many()
    await served.was_paused()
    served.peer.peer_sends(LOOKUP * 100)
    assert len(served.cnx.commands) == 6


@pytest.mark.parametrize(("as_shipped", "taken"), [(False, 100), (True, 6)])
async def test_published_messages_are_counted_by_the_cooldown_only_in_profile_pulsar(
    as_shipped: bool, taken: int
) -> None:
    served = Served(as_shipped=as_shipped)
    await served.was_paused()
    served.peer.peer_sends(SEND * 100)
    assert len(served.cnx.commands) == taken


async def test_responses_in_flight_pause_their_connection(served: Served) -> None:
    served.cnx.responses.reserve(100_000)
    reservation = served.cnx.responses.reserve(100_000)
    assert served.cnx.gate.is_closed_for(PauseCause.IN_FLIGHT_RESPONSE_BYTES)
    reservation.release()
    assert served.cnx.gate.open


# -- watched, closed, gone ------------------------------------------------------------------------


async def test_a_peer_with_sent_bytes_is_watched_until_all_are_acknowledged(served: Served) -> None:
    before = len(served.slow_peers)
    served.cnx.enqueue([ANSWER], len(ANSWER))
    assert (before, len(served.slow_peers)) == (0, 1)
    served.takes()
    await served.passes(1.0)
    assert len(served.slow_peers) == 0


async def test_the_progress_of_a_peer_is_its_acknowledged_bytes(served: Served) -> None:
    served.cnx.enqueue([bytes(100_000)], 100_000)
    await served.passes(1.0)
    served.peer.peer_reads(WORTHY_BYTES)
    await served.passes(1.0)
    assert served.cnx.sender.acknowledged_bytes() == WORTHY_BYTES
    assert served.cnx.progress.outstanding
    assert served.cnx.progress.stalled_seconds(served.clock.now()) == pytest.approx(0.5, abs=0.01)


async def test_a_slow_peer_is_closed_and_logged_with_the_reason(served: Served, caplog) -> None:
    served.is_paused()
    served.cnx.close_slow("it took nothing")
    await settle()
    assert served.cnx.closed
    assert "closing 192.0.2.1:4711: it took nothing" in caplog.text


@BOTH
async def test_a_lost_connection_leaves_no_timer_no_watch_and_no_counted_bytes(
    as_shipped: bool,
) -> None:
    # Paused for every reason
    served = Served(as_shipped=as_shipped)
    await served.was_paused()
    served.peer.peer_sends(LOOKUP * 20)
    served.is_paused()
    reservations = [served.cnx.responses.reserve(100_000) for _ in range(2)]
    served.peer.peer_sends(LOOKUP * 20)
    assert sum(served.totals.connections.values()) == 3
    served.peer.breaks()
    for reservation in reservations:
        reservation.release()
    assert len(served.slow_peers) == 0
    served.slow_peers.stop()
    assert served.clock.live == 0
    assert set(served.totals.connections.values()) == {0}
    assert served.totals.outbound.pending_bytes == served.totals.response_bytes == 0
    assert (served.totals.parked_frames, served.totals.parked_bytes) == (0, 0)


async def test_a_lost_peer_is_not_watched_again_when_bytes_are_sent(served: Served) -> None:
    served.peer.breaks()
    served.cnx.enqueue([ANSWER], len(ANSWER))
    assert len(served.slow_peers) == 0


async def test_a_peer_that_answers_a_probing_ping_is_proven(served: Served) -> None:
    newcomers = served.slow_peers._unproven
    assert served.cnx in newcomers
    assert served.cnx.ask_whether_it_reads()
    assert served.takes() == PING
    assert served.cnx in newcomers
    served.answers()
    assert served.cnx not in newcomers


async def test_an_unsolicited_pong_proves_no_peer(served: Served) -> None:
    newcomers = served.slow_peers._unproven
    served.answers()
    assert served.cnx in newcomers


@pytest.mark.parametrize("why_not", ["before the handshake", "a pipe", "gone"])
async def test_a_peer_that_cannot_be_probed_is_sent_no_ping(served: Served, why_not: str) -> None:
    if why_not == "before the handshake":
        served.cnx.state = State.GREETING
    if why_not == "a pipe":
        served.cnx.becomes_pipe()
    if why_not == "gone":
        served.cnx.abort()
        await settle()
    # The bytes of a pipe are not ours to add to
    assert not served.cnx.ask_whether_it_reads()
    assert served.takes() == b""


async def test_a_drain_reads_from_a_paused_peer() -> None:
    served = Served(as_shipped=True)
    served.is_paused()
    read_before = served.peer.is_reading()
    await served.cnx.drain()
    assert (read_before, served.peer.is_reading()) == (False, True)
    assert not served.cnx.closed


async def test_a_drain_handles_no_more_commands_and_closes_once_all_bytes_are_sent(
    served: Served,
) -> None:
    served.cnx.enqueue([ANSWER], len(ANSWER))
    await served.cnx.drain()
    served.peer.peer_sends(LOOKUP)
    await settle()
    still_open = not served.cnx.closed
    taken = served.takes()
    await settle()
    assert (still_open, taken, served.cnx.commands) == (True, ANSWER, [])
    assert served.cnx.closed


# -- logging --------------------------------------------------------------------------------------


async def test_a_log_line_about_a_connection_names_address_number_and_client_version(
    caplog: pytest.LogCaptureFixture,
) -> None:
    served = Served()
    served.cnx.client_version = "a client\nof two lines " + "x" * 1000
    served.cnx.close_slow("it reads nothing")
    [line] = caplog.records
    assert line.__dict__["address"] == "192.0.2.1:4711"
    assert line.__dict__["connection"] == served.cnx.number
    assert line.__dict__["client_version"].startswith("a client\\nof two lines")
    assert len(line.__dict__["client_version"]) < 120
    assert "principal" not in line.__dict__

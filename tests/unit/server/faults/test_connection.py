"""Faults of a server's output to clients."""

import pytest

import proto.PulsarApi_pb2 as pb
from broker.cnx import ServerCnxState
from limiter.flow.causes import PauseCause
from proto.frames import encode_command, encode_payload_command, verify_checksum
from server.faults.connection import OutgoingFaults
from server.faults.fault import Fault
from server.faults.holds import MAX_HELD_FRAMES
from server.faults.registry import FaultRegistry
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.processes.commands import TYPES, complete_command, type_name
from tests.unit.broker.commands.test_table import wire

Type = pb.BaseCommand
PING = encode_command(complete_command(Type.PING))


class Sent:
    """A broker's connection, with a peer that reads everything."""

    def __init__(self) -> None:
        self.registry, self.clock = FaultRegistry(), ManualClock()
        self.wire = wire(ServerCnxState.CONNECTED)
        self.cnx = self.wire.cnx
        self.faults = OutgoingFaults(self.registry, self.clock, self.cnx)  # type: ignore[arg-type]
        self.left = 0

    def set(self, do: dict[str, object], **more: object) -> str:
        fault = {"direction": "sent", "when": {"times": 1}, "do": do, **more}
        return self.registry.set(Fault.of(fault)).fault_id

    def sends(self, *frames: bytes) -> bytes:
        """Send frames as one entry; return the bytes received."""
        self.cnx.enqueue(frames, sum(map(len, frames)), self._left)
        return self.arrived()

    def _left(self) -> None:
        self.left += 1

    def arrived(self) -> bytes:
        found = bytes(self.wire.transport.received)
        self.wire.transport.received.clear()
        return found


@pytest.mark.parametrize("kind", TYPES, ids=type_name)
async def test_each_sent_command_can_be_dropped_delayed_or_followed_by_a_disconnect(
    kind: int,
) -> None:
    sent, name = Sent(), type_name(kind)
    command = encode_command(complete_command(kind))
    # Dropped
    sent.set({"action": "drop"}, on=[name])
    assert sent.sends(PING, command, PING) == PING + PING
    # Late
    sent.set({"action": "delay", "delayMs": 500}, on=[name])
    assert sent.sends(command) == b""
    sent.clock.advance(0.5)
    assert sent.arrived() == command
    # The last
    sent.set({"action": "disconnect", "at": "after"}, on=[name])
    assert sent.sends(command) == command
    await settle()
    assert sent.wire.closed
    assert sent.left == 3
    sent.wire.transport.breaks()


async def test_a_message_is_sent_with_a_corrupted_checksum() -> None:
    sent = Sent()
    message = pb.CommandMessage(consumer_id=1, message_id=pb.MessageIdData(ledgerId=1, entryId=1))
    command = Type(type=Type.MESSAGE, message=message)
    frame = encode_payload_command(command, b"metadata", b"payload")
    sent.set({"action": "corruptChecksum"}, on=["MESSAGE"])
    first, second = sent.sends(frame), sent.sends(frame)
    tail = 8 + command.ByteSize()
    assert second == frame
    assert first[:tail] == frame[:tail]
    assert (verify_checksum(frame[tail:]), verify_checksum(first[tail:])) == (True, False)
    sent.wire.transport.breaks()


async def test_a_cleared_delay_sends_its_frames() -> None:
    sent = Sent()
    fault = sent.set({"action": "delay", "delayMs": 500}, when={})
    assert sent.sends(PING) == b""
    sent.registry.clear(fault)
    assert sent.arrived() == PING
    assert not sent.cnx.gate.is_closed_for(PauseCause.FAULT)
    sent.wire.transport.breaks()


async def test_at_the_bound_of_held_frames_further_frames_are_sent_without_delay() -> None:
    sent = Sent()
    sent.set({"action": "delay", "delayMs": 500}, when={})
    assert sent.sends(*[PING] * MAX_HELD_FRAMES) == b""
    assert sent.sends(PING) == PING
    # The peer leaves meanwhile
    sent.wire.transport.breaks()
    # Sending has ended
    assert sent.faults._faults.holds.frames == 0
    sent.clock.advance(1)
    assert sent.arrived() == b""


async def test_a_delayed_frame_is_forgotten_once_sent() -> None:
    sent = Sent()
    sent.set({"action": "delay", "delayMs": 500}, when={})
    sent.sends(PING)
    sent.clock.advance(0.5)
    assert sent.arrived() == PING
    assert not sent.faults._faults.holds
    sent.wire.transport.breaks()

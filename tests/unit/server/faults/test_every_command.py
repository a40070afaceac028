"""Every command served by broker or proxy can have every fault, in every state."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

import pytest

import proto.PulsarApi_pb2 as pb
from broker.cnx import ServerCnx, ServerCnxState
from broker.commands.table import COMMANDS as BROKER_COMMANDS
from limiter.flow.causes import PauseCause
from proto.frames import Frame, encode_command, encode_payload_command
from proxy.cnx import ProxyConnection, ProxyConnectionState
from proxy.commands.table import COMMANDS as PROXY_COMMANDS
from server.faults.connection import ConnectionFaults
from server.faults.fault import Fault
from server.faults.holds import Incoming
from server.faults.registry import FaultRegistry
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.processes.commands import Wire, complete_command, type_name
from tests.unit.broker.commands import test_table as of_broker
from tests.unit.proxy.commands import test_table as of_proxy

Type = pb.BaseCommand


def served(role: str) -> Iterator[tuple[Enum, int]]:
    """Yield each state with each legal command."""
    table, states = (
        (BROKER_COMMANDS, ServerCnxState)
        if role == "broker"
        else (PROXY_COMMANDS, ProxyConnectionState)
    )
    for state in states:
        for kind in sorted({*table.legal_in(state), *table.frames_in(state)}):
            yield state, kind


class Victim:
    """A connection in a state, recording handled commands and effects of faults."""

    def __init__(
        self, parts: object, state: Enum, do: Mapping[str, object], **more: object
    ) -> None:
        broker = isinstance(state, ServerCnxState)
        self.cnx = ServerCnx(parts) if broker else ProxyConnection(parts)  # type: ignore[arg-type]
        self.clock, self.registry = ManualClock(), FaultRegistry()
        self.handled: list[int] = []
        self.frames: list[Frame] = []
        self.told: list[object] = []
        self.faults = ConnectionFaults(self.registry, self.clock, self.cnx, Incoming(self.cnx))
        self.cnx.faults = self.faults
        self.cnx.handle_frame = self._handle  # type: ignore[method-assign]
        self.cnx.close_producers = self.told.append  # type: ignore[method-assign]
        self.cnx.close_consumers = self.told.append  # type: ignore[method-assign]
        self.cnx.move_topic = lambda topic, _: self.told.append(topic)  # type: ignore[method-assign]
        self.wire = Wire(self.cnx)
        self.cnx.state = state
        self.registry.set(Fault.of({"do": do, **more}))

    def _handle(self, frame: Frame) -> None:
        self.handled.append(frame.command().type)
        self.frames.append(frame)

    def leaves(self) -> None:
        self.wire.transport.breaks()
        assert not self.cnx.gate.is_closed_for(PauseCause.FAULT)

    @property
    def stopped(self) -> bool:
        return self.cnx.gate.is_closed_for(PauseCause.FAULT)


async def after(victim: Victim, kind: int) -> dict[str, Any]:
    """Receive a command; return the outcome."""
    victim.wire.say(complete_command(kind))
    await settle()
    return {
        "handled": victim.handled == [kind],
        "closed": victim.wire.closed,
        "stopped": victim.stopped,
        "answers": victim.wire.answers(),
    }


def outcome(**more: object) -> dict[str, Any]:
    return {"handled": False, "closed": False, "stopped": False, "answers": [], **more}


EXPECTED: dict[str, tuple[Mapping[str, object], dict[str, Any]]] = {
    "drop": ({"action": "drop"}, outcome()),
    "before": ({"action": "disconnect"}, outcome(closed=True)),
    "after": ({"action": "disconnect", "at": "after"}, outcome(handled=True, closed=True)),
    "stop": ({"action": "stopReading"}, outcome(handled=True, stopped=True)),
    "producer": ({"action": "closeProducer"}, outcome(handled=True)),
    "consumer": ({"action": "closeConsumer"}, outcome(handled=True)),
    "move": ({"action": "moveTopic"}, outcome(handled=True)),
}


@pytest.mark.parametrize("role", ["broker", "proxy"])
@pytest.mark.parametrize("name", EXPECTED)
async def test_each_command_can_have_each_fault(role: str, name: str) -> None:
    parts = (of_broker if role == "broker" else of_proxy).parts()
    do, expected = EXPECTED[name]
    found = {}
    for state, kind in served(role):
        victim = Victim(parts, state, do)
        found[state.name, type_name(kind)] = await after(victim, kind)
        victim.leaves()
    assert found == dict.fromkeys(found, expected)
    assert len(found) > 5


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_each_command_can_be_answered_with_an_error(role: str) -> None:
    parts = (of_broker if role == "broker" else of_proxy).parts()
    do = {"action": "error", "error": "ProducerBusy", "message": "as asked"}
    for state, kind in served(role):
        victim = Victim(parts, state, do, on=[type_name(kind)])
        found = await after(victim, kind)
        (answer,) = found.pop("answers")
        assert found.items() <= outcome(closed=kind == Type.CONNECT).items()
        text = str(answer)
        assert "ProducerBusy" in text
        assert "as asked" in text
        asked = str(complete_command(kind))
        assert ("request_id: 1\n" in text) is ("request_id: 1\n" in asked)
        victim.leaves()


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_each_command_can_be_delayed(role: str) -> None:
    parts = (of_broker if role == "broker" else of_proxy).parts()
    for state, kind in served(role):
        victim = Victim(parts, state, {"action": "delay", "delayMs": 2_000})
        assert not (await after(victim, kind))["handled"]
        victim.clock.advance(1.9)
        await settle()
        assert victim.handled == []
        victim.clock.advance(0.1)
        await settle()
        assert victim.handled == [kind]
        assert not victim.stopped
        victim.leaves()


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_reading_can_be_slowed_behind_each_command(role: str) -> None:
    parts = (of_broker if role == "broker" else of_proxy).parts()
    for state, kind in served(role):
        victim = Victim(parts, state, {"action": "drain", "bytesPerSecond": 1}, when={"times": 1})
        victim.wire.say(complete_command(kind))
        victim.wire.say(complete_command(kind))
        await settle()
        assert victim.stopped
        # As many seconds pass as the second command has bytes
        victim.clock.advance(victim.frames[-1].total_size)
        assert not victim.stopped
        victim.registry.clear_all()
        victim.wire.say(complete_command(kind))
        await settle()
        assert not victim.stopped
        victim.leaves()


async def test_commands_after_a_disconnecting_command_are_not_handled() -> None:
    do = {"action": "disconnect", "at": "after"}
    victim = Victim(of_broker.parts(), ServerCnxState.CONNECTED, do, when={"times": 1})
    victim.wire.transport.peer_sends(encode_command(complete_command(Type.LOOKUP)) * 2)
    assert victim.handled == [Type.LOOKUP]
    victim.leaves()


async def test_an_illegal_command_has_no_fault() -> None:
    victim = Victim(of_broker.parts(), ServerCnxState.START, {"action": "drop"})
    victim.wire.say(complete_command(Type.LOOKUP))
    # The handler refuses the command
    assert victim.handled == [Type.LOOKUP]
    victim.leaves()


async def test_delayed_commands_are_dropped_when_the_client_disconnects() -> None:
    do = {"action": "delay", "delayMs": 1_000}
    victim = Victim(of_broker.parts(), ServerCnxState.CONNECTED, do)
    victim.wire.say(complete_command(Type.LOOKUP))
    victim.wire.transport.breaks()
    assert victim.faults.holds.frames == 0


async def test_a_message_can_be_received_with_a_corrupted_checksum() -> None:
    do = {"action": "corruptChecksum"}
    victim = Victim(of_broker.parts(), ServerCnxState.CONNECTED, do, on=["SEND"])
    command = Type(type=Type.SEND, send=pb.CommandSend(producer_id=1, sequence_id=0))
    data = encode_payload_command(command, b"metadata", b"payload")
    victim.wire.transport.peer_sends(data)
    (frame,) = victim.frames
    changed = [one ^ other for one, other in zip(data[4:], frame.body(), strict=True)]
    assert sum(one.bit_count() for one in changed) == 1
    assert changed[-len(b"metadatapayload") - 5]
    victim.leaves()

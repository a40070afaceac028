"""The cost of the read gate for small frames: processor time without sockets.

Chunks of CHUNK_FRAMES frames go to ``data_received``, and a transport that accepts everything
counts the answers. The yardstick decodes and parses the same frames in a plain loop, and writes the
answers without a connection. Our side is the client connection of broker and proxy, in four states:
pausing off (no frame is parked or counted); on, but never paused; in the cooldown after a resume
(each lookup is counted); and paused during each chunk (each lookup is parked, and processed later).
All sides alternate in slices of milliseconds.
"""

from __future__ import annotations

import asyncio
import gc
import time
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

import proto.PulsarApi_pb2 as pb
from benchmarks.processes import BenchError
from benchmarks.result import BenchOptions, BenchResult, Figure
from limiter.clock import LoopClock
from limiter.flow.causes import PauseCause
from limiter.flow.flow_control import CooldownRules, FlowRules
from limiter.flow.totals import FlowTotals
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, MemoryLimit
from limiter.slow_peers.eviction import SlowPeers
from limiter.slow_peers.peer import SlowPeerRules
from proto.frames import FrameDecoder, encode_command
from proto.transport.process_flow import ProcessFlow
from server.connection.command_table import CommandTable, Row
from server.connection.flow_parts import FLOODGATE_RULES, PULSAR_RULES, FlowParts
from server.connection.served_connection import ServedConnection
from server.loop import run as run_loop

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Buffer = bytes | memoryview

CHUNK_FRAMES = 64
CHUNKS_PER_SLICE = 16
SLICES_PER_SECOND = 20
MAX_MESSAGE_BYTES = 5_242_880
MANY = 1_000_000_000
TOPIC = "persistent://public/default/a-topic-of-usual-length"
YARDSTICK, OFF, ON, COOLING, PARKED = "yardstick", "off", "on", "cooling", "parked"
LABELS = {
    YARDSTICK: "loop without a connection",
    OFF: "connection, pausing off",
    ON: "connection, pausing on",
    COOLING: "connection, in the cooldown",
    PARKED: "connection, parked first",
}
AGAINST = {OFF: YARDSTICK, ON: OFF, COOLING: ON, PARKED: ON}
"""Baseline of each side; ON against OFF is the gate's cost."""
PING = encode_command(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing()))
PONG = encode_command(pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong()))
LOOKUP = encode_command(
    pb.BaseCommand(
        type=pb.BaseCommand.LOOKUP,
        lookupTopic=pb.CommandLookupTopic(topic=TOPIC, request_id=1),
    )
)
FOUND = encode_command(
    pb.BaseCommand(
        type=pb.BaseCommand.LOOKUP_RESPONSE,
        lookupTopicResponse=pb.CommandLookupTopicResponse(
            request_id=1,
            brokerServiceUrl="pulsar://127.0.0.1:6650",
            response=pb.CommandLookupTopicResponse.Connect,
            authoritative=True,
        ),
    )
)
FRAMES = {"PING": PING, "LOOKUP": LOOKUP}
SIDES = {"PING": (YARDSTICK, OFF, ON), "LOOKUP": tuple(LABELS)}
"""A PING is neither counted in the cooldown nor parked."""


class CountingTransport(asyncio.Transport):
    """A transport that accepts all writes and counts their bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.taken_bytes = 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing, because this transport has no buffer."""

    def get_write_buffer_size(self) -> int:
        """Return 0, because this transport has no buffer."""
        return 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Count the bytes of a write."""
        self.taken_bytes += len(data)

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        """Count the bytes of all chunks of a write."""
        self.taken_bytes += sum(map(len, list_of_data))

    def is_closing(self) -> bool:
        """Return False, because this transport is never closed."""
        return False

    def pause_reading(self) -> None:
        """Do nothing: the benchmark delivers all data."""

    def resume_reading(self) -> None:
        """Do nothing: the benchmark delivers all data."""


class BareFrames(asyncio.Protocol):
    """The yardstick: decodes, parses and answers frames, without pauses or an outbound queue."""

    def __init__(self) -> None:
        self._decoder = FrameDecoder(MAX_MESSAGE_BYTES)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport for the answers."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer each received frame with one write."""
        self._decoder.feed(data)
        while (frame := self._decoder.next_frame()) is not None:
            ping = frame.command().type == pb.BaseCommand.PING
            if self._transport is not None:
                self._transport.write(PONG if ping else FOUND)


class State(Enum):
    """States of a connection; all handshakes are finished before the measurement."""

    GREETING = "greeting"
    READY = "ready"


def answer(cnx: ServedConnection, _: pb.BaseCommand) -> None:
    """Answer a command like a broker that has every answer cached."""
    cnx.enqueue([FOUND], len(FOUND))


def answer_ping(cnx: ServedConnection, _: pb.BaseCommand) -> None:
    """Answer a PING command."""
    cnx.answer_ping()


COMMANDS = CommandTable(
    (
        Row(pb.BaseCommand.PING, answer_ping, (State.READY,)),
        Row(pb.BaseCommand.LOOKUP, answer, (State.READY,)),
    ),
    handshake=(State.GREETING,),
)


@dataclass(frozen=True)
class Side:
    """One side of the comparison: its protocol, its transport, and whether it is paused.

    If ``paused`` is true, reading is paused while each chunk arrives.
    """

    protocol: asyncio.Protocol
    transport: CountingTransport
    paused: bool = False

    async def chunks(self, chunk: bytes, count: int) -> None:
        """Deliver a chunk of frames ``count`` times."""
        for _ in range(count):
            if self.paused:
                await self._paused_for(chunk)
            else:
                self.protocol.data_received(chunk)

    async def _paused_for(self, chunk: bytes) -> None:
        gate = cast("ServedConnection", self.protocol).gate
        gate.close_for(PauseCause.OUTBOUND_BUFFER_FULL)
        self.protocol.data_received(chunk)
        gate.open_for(PauseCause.OUTBOUND_BUFFER_FULL)
        await asyncio.sleep(0)


def run(options: BenchOptions) -> BenchResult:
    """Measure all sides in each round.

    Raises:
        BenchError: Not every frame was answered.
    """
    rounds = []
    for number in range(options.rounds):
        options.note(f"round {number + 1}")
        rounds.append(run_loop(measure(max(1, round(options.seconds * SLICES_PER_SECOND)))))
    return BenchResult(conclude(rounds), rounds=rounds)


async def measure(slices: int) -> dict[str, dict[str, float]]:
    """Measure all sides alternately; return processor microseconds per frame, by kind and side.

    Raises:
        BenchError: Not every frame was answered.
    """
    found = {}
    for kind, frame in FRAMES.items():
        sides = {name: _side(name) for name in SIDES[kind]}
        spent = await _interleaved(sides, frame * CHUNK_FRAMES, slices)
        frames = slices * CHUNKS_PER_SLICE * CHUNK_FRAMES
        _check_answers(sides, frames * len(PONG if kind == "PING" else FOUND))
        found[kind] = {name: nanos / 1000 / frames for name, nanos in spent.items()}
    return found


async def _interleaved(sides: Mapping[str, Side], chunk: bytes, slices: int) -> dict[str, int]:
    spent = dict.fromkeys(sides, 0)
    gc.collect()
    for _ in range(slices):
        for name, side in sides.items():
            started = time.thread_time_ns()
            await side.chunks(chunk, CHUNKS_PER_SLICE)
            spent[name] += time.thread_time_ns() - started
    return spent


def _check_answers(sides: Mapping[str, Side], expected_bytes: int) -> None:
    for name, side in sides.items():
        if side.transport.taken_bytes != expected_bytes:
            raise BenchError(
                f"{LABELS[name]} answered {side.transport.taken_bytes} of {expected_bytes} bytes"
            )


def _side(name: str) -> Side:
    """Return a side of the comparison whose connection is made."""
    transport = CountingTransport()
    protocol = BareFrames() if name == YARDSTICK else _served(name)
    protocol.connection_made(transport)
    if name == COOLING:
        _begin_cooldown(cast("ServedConnection", protocol))
    return Side(protocol, transport, paused=name == PARKED)


def _served(name: str) -> ServedConnection:
    cnx = ServedConnection(_flow_parts(name), COMMANDS, MAX_MESSAGE_BYTES)
    cnx.state = State.READY
    return cnx


def _begin_cooldown(served: ServedConnection) -> None:
    served.writability_changed(writable=False)
    served.writability_changed(writable=True)


def _flow_parts(name: str) -> FlowParts:
    """Return the flow control of a process, for one side of the comparison.

    The cooldown has permits for all frames, and does not end.
    """
    clock, pausing = LoopClock(), name != OFF
    totals = FlowTotals(clock)
    limit = MemoryLimit(MANY, MANY, 1.0)
    limiter = AsyncDualMemoryLimiter(limit, limit, clock)
    return FlowParts(
        clock=clock,
        rules=FlowRules(
            pause_if_unwritable=pausing, cooldown=CooldownRules(MANY, 0.010, float(MANY))
        ),
        keep_alive_seconds=0,
        connection_rules=FLOODGATE_RULES if pausing else PULSAR_RULES,
        process=ProcessFlow(totals.outbound, totals, parks_frames=pausing),
        totals=totals,
        slow_peers=SlowPeers(limiter, SlowPeerRules(0, 0, 0), totals, clock),
    )


def conclude(rounds: Sequence[Mapping[str, Mapping[str, float]]]) -> list[Figure]:
    """Return each side's time per frame, and its ratio to the baseline."""
    figures = []
    for kind in FRAMES:
        micros = {name: [found[kind][name] for found in rounds] for name in rounds[0][kind]}
        figures += [
            Figure(f"{kind}: {LABELS[name]}", "µs/frame", values) for name, values in micros.items()
        ]
        for name, other in AGAINST.items():
            if name in micros:
                times = [a / b for a, b in zip(micros[name], micros[other], strict=True)]
                figures.append(Figure(f"{kind}: {name} / {other}", "times", times))
    return figures

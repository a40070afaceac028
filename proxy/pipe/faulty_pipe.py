"""Pipes of a proxy that can inject faults into the stream between client and broker.

While a fault may concern the client, each direction of the pipe reads frames; otherwise it copies
bytes and reads only the frame lengths, to know the frame boundaries. Unused without
floodgateFaultsEnabled.
"""

from __future__ import annotations

import struct
from itertools import count
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from proto.commands import NO_REQUEST
from proto.errors import RemoteProtocolError
from proto.frames import LENGTH_FIELD_BYTES
from server.faults.connection import ConnectionFaults
from server.faults.fault import Direction
from server.faults.holds import Incoming
from server.faults.selection import full_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock
    from proto.frames import Frame
    from proto.transport.connection import Connection
    from proxy.pipe.leg import PipeLeg
    from server.faults.registry import FaultRegistry


_LENGTH = struct.Struct(">I")


class FrameBoundary:
    """A position in a stream of frames that knows where the next frame begins."""

    def __init__(self) -> None:
        self._left = 0
        self._length = b""

    @property
    def reached(self) -> bool:
        """True if a frame begins at the next byte."""
        return not (self._left or self._length)

    def follow(self, data: bytes) -> None:
        """Advance the position to the end of a chunk of bytes."""
        at, size = self.follow_to_next(data), len(data)
        if not self.reached:
            return
        while at <= size - _LENGTH.size:
            at += _LENGTH.size + _LENGTH.unpack_from(data, at)[0]
        if at > size:
            self._left = at - size
        else:
            self._length = data[at:]

    def follow_to_next(self, data: bytes) -> int:
        """Advance to the next frame within a chunk of bytes; return the number of bytes skipped."""
        at = 0
        if self._length:
            at = min(_LENGTH.size - len(self._length), len(data))
            self._length += data[:at]
            if len(self._length) < _LENGTH.size:
                return at
            (self._left,) = _LENGTH.unpack(self._length)
            self._length = b""
        taken = min(self._left, len(data) - at)
        self._left -= taken
        return at + taken


Type = pb.BaseCommand
_ANSWERS = (Type.SUCCESS, Type.ERROR)
_OWN_REQUESTS = 1 << 63
"""First request id of the proxy's own requests: clients count from 0."""
MAX_TOPICS = 1_000
"""Most producers and consumers of a pipe whose topic is remembered; the oldest is forgotten."""
MAX_SAID = 1_000
"""Commands of the proxy waiting for a frame boundary; beyond, the client is closed."""


class PipeClient:
    """The client of a pipe, to which injected faults can be applied.

    See server.faults.acting.Faulty.

    Knows producers and consumers opened while frames were read.

    Attributes:
        peer: The client's address.
        client_version: The client's version text.
        says: Sends the client a command, between the broker's frames.
        asked: Unanswered requests of the proxy to the broker.
    """

    def __init__(self, leg: PipeLeg, broker: PipeLeg, client_version: str) -> None:
        self._leg = leg
        self._broker = broker
        self._own_requests = count(_OWN_REQUESTS)
        self.asked: set[int] = set()
        self.peer = leg.peer
        self.client_version = client_version
        self._topics: dict[tuple[int, int], str] = {}
        self.says: Callable[[pb.BaseCommand], object] = leg.send
        self.abort = leg.abort
        self.take_no_more = leg.take_no_more

    def send(self, command: pb.BaseCommand) -> None:
        """Send the client a command that the proxy itself has made."""
        self.says(command)

    def note(self, frame: Frame) -> None:
        """Remember a producer's or consumer's topic if a frame opens one."""
        kind = frame.command_type()
        if kind not in (Type.PRODUCER, Type.SUBSCRIBE):
            return
        try:
            command = frame.command()
        except RemoteProtocolError:
            return
        if kind == Type.PRODUCER:
            key, topic = (kind, command.producer.producer_id), command.producer.topic
        else:
            key, topic = (kind, command.subscribe.consumer_id), command.subscribe.topic
        self._topics.pop(key, None)
        self._topics[key] = full_name(topic)
        if len(self._topics) > MAX_TOPICS:
            del self._topics[next(iter(self._topics))]

    def is_legal(self, _: int) -> bool:
        """Return True: the broker itself checks whether commands are legal."""
        return True

    async def drain(self) -> None:
        """Send the queued bytes, then close the client's connection."""
        self._leg.close()

    def topic_of_producer(self, producer_id: int) -> str:
        """Return the topic of one of the client's producers; empty if unknown."""
        return self._topics.get((Type.PRODUCER, producer_id), "")

    def topic_of_consumer(self, consumer_id: int) -> str:
        """Return the topic of one of the client's consumers; empty if unknown."""
        return self._topics.get((Type.SUBSCRIBE, consumer_id), "")

    def close_producers(self, producer_id: int | None) -> None:
        """Tell the client that a producer was closed; if given None, all known producers."""
        for one in self._known(Type.PRODUCER, producer_id):
            close = pb.CommandCloseProducer(producer_id=one, request_id=NO_REQUEST)
            self.send(Type(type=Type.CLOSE_PRODUCER, close_producer=close))

    def close_consumers(self, consumer_id: int | None) -> None:
        """Close a consumer at both client and broker; if given None, all known consumers.

        An open consumer at the broker would receive messages ignored by the client.
        """
        for one in self._known(Type.SUBSCRIBE, consumer_id):
            close = pb.CommandCloseConsumer(consumer_id=one, request_id=NO_REQUEST)
            self.send(Type(type=Type.CLOSE_CONSUMER, close_consumer=close))
            if len(self.asked) < MAX_TOPICS:
                close.request_id = next(self._own_requests)
                self.asked.add(close.request_id)
                self._broker.send(Type(type=Type.CLOSE_CONSUMER, close_consumer=close))

    def answers_proxy(self, frame: Frame) -> bool:
        """Return True, only once, for the frame that answers the proxy's request to the broker."""
        if not self.asked or frame.command_type() not in _ANSWERS:
            return False
        command = frame.command()
        answer = command.success if command.type == Type.SUCCESS else command.error
        known = answer.request_id in self.asked
        self.asked.discard(answer.request_id)
        return known

    def _known(self, kind: int, one: int | None) -> list[int]:
        return [number for of, number in self._topics if of == kind] if one is None else [one]

    def move_topic(self, topic: str, to: str | None) -> None:
        """Do nothing: a proxy serves no topics, and refuses faults that move a topic."""


class _FaultyLeg:
    """One direction of a pipe, into whose frames faults can be injected.

    Args:
        leg: The side to read.
        other: The side to write.
        client: The pipe's client.
        direction: RECEIVED for client frames, SENT for broker frames.
    """

    def __init__(
        self,
        leg: PipeLeg,
        other: Connection,
        client: PipeClient,
        registry: FaultRegistry,
        clock: Clock,
        direction: Direction,
    ) -> None:
        self._leg = leg
        self._other = other
        self._client = client
        self._of_broker = direction is Direction.SENT
        self._faults = ConnectionFaults(registry, clock, client, Incoming(leg), direction)
        self._boundary = FrameBoundary()
        self._said: list[pb.BaseCommand] = []
        leg.takes_frame = self._frame
        leg.when_lost(lambda _: self._faults.lost())

    def pipe(self) -> None:
        self._leg.sender.in_a_pipe = True
        self._leg.receive_raw(self._bytes)

    def say(self, command: pb.BaseCommand) -> None:
        """Send a command of the proxy's own as soon as the last forwarded frame is complete."""
        if self._boundary.reached:
            self._other.send(command)
        elif len(self._said) < MAX_SAID:
            self._said.append(command)
        else:
            self._other.abort()

    def _bytes(self, data: bytes) -> None:
        if not self._wanted:
            self._boundary.follow(data)
            self._other.enqueue([data], len(data))
            return
        end = self._boundary.follow_to_next(data)
        if end:
            self._other.enqueue([data[:end]], end)
        if self._boundary.reached:
            said, self._said = self._said, []
            for command in said:
                self._other.send(command)
            self._leg.receive_frames(memoryview(data)[end:])

    def _frame(self, frame: Frame) -> None:
        if self._of_broker:
            if self._client.answers_proxy(frame):
                return
        else:
            self._client.note(frame)
        left = self._faults.frame(frame)
        if left is not None:
            self._pass_on(left)
        waiting = self._faults.holds or len(self._leg.intake) or self._leg.sender.closing
        if self._leg.decoder.between_frames and not (waiting or self._wanted):
            self._leg.receive_raw(self._bytes)

    @property
    def _wanted(self) -> bool:
        own = self._said or (self._of_broker and self._client.asked)
        return bool(own) or self._faults.wanted

    def _pass_on(self, frame: Frame) -> None:
        size = frame.total_size
        length = size.to_bytes(LENGTH_FIELD_BYTES, "big")
        self._other.enqueue([length, *frame.parts], LENGTH_FIELD_BYTES + size)


def pipe_with_faults(
    client: PipeLeg,
    broker: PipeLeg,
    connected: pb.CommandConnected,
    client_version: str,
    registry: FaultRegistry,
    clock: Clock,
) -> None:
    """Start a pipe that copies bytes, or whole frames while a fault may concern its client.

    Args:
        client: The client's side.
        broker: The broker's side.
        connected: The broker's greeting, with the largest message size.
        client_version: The client's version text.
        registry: The faults to inject.
        clock: The source of time.
    """
    known = PipeClient(client, broker, client_version)
    for leg in (client, broker):
        largest = max(leg.decoder.max_message_bytes, connected.max_message_size)
        leg.decoder.max_message_bytes = largest
    _FaultyLeg(client, broker, known, registry, clock, Direction.RECEIVED).pipe()
    answers = _FaultyLeg(broker, client, known, registry, clock, Direction.SENT)
    known.says = answers.say
    answers.pipe()

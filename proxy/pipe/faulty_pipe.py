"""The pipes of a proxy whose clients may have faults.

While a fault is set that can be about its client, each direction of a pipe reads frames; otherwise
it copies bytes as any pipe does, and reads the lengths of frames alone, to know where one begins.
Without floodgateFaultsEnabled there is none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from proto.commands import NO_REQUEST
from proto.errors import RemoteProtocolError
from proto.frames import LENGTH_FIELD_BYTES
from proxy.pipe.frame_boundary import FrameBoundary
from server.faults.connection import ConnectionFaults
from server.faults.fault import Direction
from server.faults.holds import Incoming

if TYPE_CHECKING:
    from limiter.clock import Clock
    from proto.frames import Frame
    from proto.transport.connection import Connection
    from proxy.pipe.leg import PipeLeg
    from server.faults.registry import FaultRegistry

Type = pb.BaseCommand
MAX_TOPICS = 1_000
"""Producers and consumers of one pipe whose topics are known: as many as began lately."""


class PipeClient:
    """The client of a pipe, as faults see it. See server.faults.acting.Faulty.

    Its producers and consumers are known if they began while its frames were read.

    Attributes:
        peer: Its address.
        client_version: As it calls itself.
    """

    def __init__(self, leg: PipeLeg, client_version: str) -> None:
        self._leg = leg
        self.peer = leg.peer
        self.client_version = client_version
        self._topics: dict[tuple[int, int], str] = {}
        self.send, self.abort = leg.send, leg.abort
        self.take_no_more = leg.take_no_more

    def note(self, frame: Frame) -> None:
        """Note the topic of a producer or consumer that begins."""
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
        self._topics[key] = topic
        if len(self._topics) > MAX_TOPICS:
            del self._topics[next(iter(self._topics))]

    def is_legal(self, _: int) -> bool:
        """Return True: the broker decides."""
        return True

    async def drain(self) -> None:
        """Let what is queued leave, then close."""
        self._leg.close()

    def topic_of_producer(self, producer_id: int) -> str:
        """Return the topic of a producer; empty if it is not known."""
        return self._topics.get((Type.PRODUCER, producer_id), "")

    def topic_of_consumer(self, consumer_id: int) -> str:
        """Return the topic of a consumer; empty if it is not known."""
        return self._topics.get((Type.SUBSCRIBE, consumer_id), "")

    def close_producers(self, producer_id: int | None) -> None:
        """Tell the client that a producer was closed; None: all that are known."""
        for one in self._known(Type.PRODUCER, producer_id):
            close = pb.CommandCloseProducer(producer_id=one, request_id=NO_REQUEST)
            self.send(Type(type=Type.CLOSE_PRODUCER, close_producer=close))

    def close_consumers(self, consumer_id: int | None) -> None:
        """Tell the client that a consumer was closed; None: all that are known."""
        for one in self._known(Type.SUBSCRIBE, consumer_id):
            close = pb.CommandCloseConsumer(consumer_id=one, request_id=NO_REQUEST)
            self.send(Type(type=Type.CLOSE_CONSUMER, close_consumer=close))

    def _known(self, kind: int, one: int | None) -> list[int]:
        return [number for of, number in self._topics if of == kind] if one is None else [one]

    def move_topic(self, topic: str) -> None:
        """Do nothing: a proxy serves no topic, and refuses such a fault."""


class _FaultyLeg:
    """One direction of a pipe.

    Args:
        leg: The side that is read.
        other: The side that is written.
        client: Who the pipe is for.
        direction: Who is read.
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
        self._faults = ConnectionFaults(registry, clock, client, Incoming(leg), direction)
        self._boundary = FrameBoundary()
        leg.takes_frame = self._frame
        leg.when_lost(lambda _: self._faults.lost())

    def pipe(self) -> None:
        """Copy bytes from now on."""
        self._leg.sender.in_a_pipe = True
        self._leg.receive_raw(self._bytes)

    def _bytes(self, data: bytes) -> None:
        if not self._faults.wanted:
            self._boundary.follow(data)
            self._other.enqueue([data], len(data))
            return
        end = self._boundary.follow_to_next(data)
        if end:
            self._other.enqueue([data[:end]], end)
        if self._boundary.reached:
            self._leg.receive_frames(memoryview(data)[end:])

    def _frame(self, frame: Frame) -> None:
        self._client.note(frame)
        left = self._faults.frame(frame)
        if left is not None:
            self._pass_on(left)
        waiting = self._faults.holds or len(self._leg.intake) or self._leg.sender.closing
        if self._leg.decoder.between_frames and not (waiting or self._faults.wanted):
            self._leg.receive_raw(self._bytes)

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
    """Copy bytes both ways from now on, or frames while a fault is set about the client.

    Args:
        client: The client's side.
        broker: The broker's side.
        connected: The broker's greeting: it says how large messages may be.
        client_version: As the client calls itself.
        registry: The faults that are set.
        clock: The time.
    """
    known = PipeClient(client, client_version)
    for leg in (client, broker):
        largest = max(leg.decoder.max_message_bytes, connected.max_message_size)
        leg.decoder.max_message_bytes = largest
    _FaultyLeg(client, broker, known, registry, clock, Direction.RECEIVED).pipe()
    _FaultyLeg(broker, client, known, registry, clock, Direction.SENT).pipe()

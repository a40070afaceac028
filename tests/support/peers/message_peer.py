"""A raw peer that publishes and consumes, independent of Floodgate's code."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import proto.PulsarApi_pb2 as pb
from tests.support.peers.frames import frame, pong, split_frame, split_message, with_checksum
from tests.support.peers.raw_peer import RawPeer, connect_command

Type = pb.BaseCommand


class Received(NamedTuple):
    position: tuple[int, int]
    payload: bytes


class MessagePeer:
    """A connection with producers and consumers.

    Attributes:
        raw: The connection.
        received: Messages that arrived during other waits.
    """

    def __init__(self, raw: RawPeer) -> None:
        self.raw = raw
        self.received: list[Received] = []
        self._request_id = 0

    @classmethod
    async def connect(
        cls, url: str, target: str | None = None, receive_buffer_bytes: int = 262_144
    ) -> MessagePeer:
        """Connect to a broker, or through a proxy to ``target``."""
        raw = await RawPeer.connect(url, receive_buffer_bytes)
        await raw.shake_hands(connect_command(target, 21))
        return cls(raw)

    def close(self) -> None:
        self.raw.close()

    def next_id(self) -> int:
        self._request_id += 1
        return self._request_id

    # -- asking -------------------------------------------------------------------------------

    async def lookup(
        self, topic: str, *, authoritative: bool = False
    ) -> pb.CommandLookupTopicResponse:
        """Ask where a topic is served; a redirect is returned."""
        asked = pb.CommandLookupTopic(
            topic=topic, request_id=self.next_id(), authoritative=authoritative
        )
        await self.raw.send(Type(type=Type.LOOKUP, lookupTopic=asked))
        return (await self._until(lambda one: one.type == Type.LOOKUP_RESPONSE)).lookupTopicResponse

    async def producer(self, topic: str, producer_id: int = 1, name: str = "") -> pb.BaseCommand:
        """Make a producer; return PRODUCER_SUCCESS or ERROR."""
        command = Type(type=Type.PRODUCER)
        command.producer.topic = topic
        command.producer.producer_id = producer_id
        command.producer.request_id = self.next_id()
        if name:
            command.producer.producer_name = name
        await self.raw.send(command)
        return await self._until(lambda one: one.type in (Type.PRODUCER_SUCCESS, Type.ERROR))

    async def subscribe(self, topic: str, name: str = "s", consumer_id: int = 1) -> pb.BaseCommand:
        """Make a Shared consumer from the beginning; return SUCCESS or ERROR."""
        command = Type(type=Type.SUBSCRIBE)
        asked = command.subscribe
        asked.topic, asked.subscription, asked.consumer_id = topic, name, consumer_id
        asked.request_id, asked.subType = self.next_id(), pb.CommandSubscribe.Shared
        asked.initialPosition = pb.CommandSubscribe.Earliest
        await self.raw.send(command)
        return await self._until(lambda one: one.type in (Type.SUCCESS, Type.ERROR))

    async def flow(self, permits: int, consumer_id: int = 1) -> None:
        """Permit messages."""
        flow = pb.CommandFlow(consumer_id=consumer_id, messagePermits=permits)
        await self.raw.send(Type(type=Type.FLOW, flow=flow))

    async def ack(self, *positions: tuple[int, int], consumer_id: int = 1) -> None:
        """Acknowledge messages individually."""
        command = Type(type=Type.ACK)
        command.ack.consumer_id = consumer_id
        command.ack.ack_type = pb.CommandAck.Individual
        for ledger_id, entry_id in positions:
            command.ack.message_id.add(ledgerId=ledger_id, entryId=entry_id)
        await self.raw.send(command)

    # -- messages -----------------------------------------------------------------------------

    async def publish(self, sequence_id: int, payload: bytes, producer_id: int = 1) -> None:
        """Send a message without awaiting its receipt."""
        await self.raw.send_bytes(send_frame(sequence_id, payload, producer_id))

    async def receipt(self) -> pb.BaseCommand:
        """Return the next SEND_RECEIPT, SEND_ERROR or CLOSE_PRODUCER."""
        kinds = (Type.SEND_RECEIPT, Type.SEND_ERROR, Type.CLOSE_PRODUCER)
        return await self._until(lambda one: one.type in kinds)

    async def message(self) -> Received:
        while not self.received:
            await self._until(lambda one: one.type == Type.MESSAGE)
        return self.received.pop(0)

    async def closed_by_broker(self) -> pb.BaseCommand:
        """Return the next CLOSE_PRODUCER or CLOSE_CONSUMER."""
        return await self._until(lambda one: one.type in (Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER))

    async def _until(self, wanted: Callable[[pb.BaseCommand], bool]) -> pb.BaseCommand:
        """Read until a wanted command comes; keep messages, answer PINGs."""
        while True:
            command, behind = split_frame(await self.raw.frame())
            if command.type == Type.PING:
                await self.raw.send(pong())
            elif command.type == Type.MESSAGE:
                position = command.message.message_id
                _, payload = split_message(behind)
                self.received.append(Received((position.ledgerId, position.entryId), payload))
            if wanted(command):
                return command


def send_frame(sequence_id: int, payload: bytes, producer_id: int = 1) -> bytes:
    """Return a single message's SEND."""
    send = pb.CommandSend(producer_id=producer_id, sequence_id=sequence_id, num_messages=1)
    metadata = pb.MessageMetadata(producer_name="raw", sequence_id=sequence_id, publish_time=1)
    return frame(Type(type=Type.SEND, send=send), with_checksum(metadata, payload))

"""The frames of producers and consumers, and connections that open them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from limiter.clock import deadline
from loadgen.clients.connect import CONNECT_TIMEOUT_SECONDS
from loadgen.clients.connection import lookup_frame
from loadgen.clients.refusals import refusal_reason
from proto.frames import encode_command, encode_payload_command

if TYPE_CHECKING:
    from loadgen.clients.connection import ClientConnection

Type = pb.BaseCommand
PRODUCER_ID = CONSUMER_ID = _LOOKUP_ID = 1
MOST_PERMITS = 1_000_000


def topic_of(namespace: str, client: int) -> str:
    """Return the topic of a healthy producer."""
    return f"persistent://{namespace}/beside-silent-{client}"


def producer_frame(topic: str) -> bytes:
    """Return a PRODUCER."""
    asked = pb.CommandProducer(topic=topic, producer_id=PRODUCER_ID, request_id=2)
    return encode_command(Type(type=Type.PRODUCER, producer=asked))


def subscribe_frame(topic: str, subscription: str) -> bytes:
    """Return a SUBSCRIBE of a subscription that ends with its consumer."""
    asked = pb.CommandSubscribe(
        topic=topic,
        subscription=subscription,
        subType=pb.CommandSubscribe.Exclusive,
        consumer_id=CONSUMER_ID,
        request_id=2,
        durable=False,
    )
    return encode_command(Type(type=Type.SUBSCRIBE, subscribe=asked))


def flow_frame() -> bytes:
    """Return a FLOW with room for everything."""
    asked = pb.CommandFlow(consumer_id=CONSUMER_ID, messagePermits=MOST_PERMITS)
    return encode_command(Type(type=Type.FLOW, flow=asked))


def send_frame(sequence_id: int, payload: bytes) -> bytes:
    """Return a SEND."""
    sent = pb.CommandSend(producer_id=PRODUCER_ID, sequence_id=sequence_id, num_messages=1)
    metadata = pb.MessageMetadata(
        producer_name="beside-silent", sequence_id=sequence_id, publish_time=1
    )
    command = Type(type=Type.SEND, send=sent)
    return encode_payload_command(command, metadata.SerializeToString(), payload)


class Opening:
    """A topic's way from LOOKUP to a producer or consumer; its mutable state is how it ended.

    Args:
        topic: The topic.
        wanted: The PRODUCER or SUBSCRIBE.
    """

    def __init__(self, topic: str, wanted: bytes) -> None:
        self._topic = topic
        self._wanted = wanted
        # Empty when it is open, or why it is not.
        self._done: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def open(self, connection: ClientConnection) -> str | None:
        """Ask for it on a connection; return why it was not to be had, or None."""
        # A broker owns a topic only once it was looked up.
        connection.send(lookup_frame(self._topic, _LOOKUP_ID))
        try:
            async with deadline(connection.context.clock, CONNECT_TIMEOUT_SECONDS):
                return await self._done or None
        except TimeoutError:
            return f"no producer or consumer within {CONNECT_TIMEOUT_SECONDS:g} s"

    def next_frame(self, command: pb.BaseCommand) -> bytes | None:
        """Take an answer; return what is to be sent then."""
        if command.type == Type.LOOKUP_RESPONSE:
            response = command.lookupTopicResponse
            if response.response != pb.CommandLookupTopicResponse.Failed:
                return self._wanted
            self.end(refusal_reason(response.error, response.message))
        elif command.type in (Type.PRODUCER_SUCCESS, Type.SUCCESS):
            self.end("")
        return None

    def end(self, reason: str) -> None:
        """Note that it is open, or why it will not be."""
        if not self._done.done():
            self._done.set_result(reason)

"""Clients that consume the messages of a group of publishers, and verify every message."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

import proto.PulsarApi_pb2 as pb
from loadgen.behaviours.publish import topic_of
from loadgen.engine.frames import frame_of, read_message, request_frame
from loadgen.plan.fields import Name
from loadgen.plan.group import Group

if TYPE_CHECKING:
    from loadgen.engine.client import LoadClient
    from loadgen.engine.link import Link

PERMITS = 1_000
"""Receive queue of a consumer, in messages; permits are renewed when half is used."""


class Consume(Group):
    """Consume the messages of a group of publishers, and verify every message.

    Attributes:
        of: Name of the publishing group; client *i* consumes the topic of publisher *i* modulo the
            number of publishers.
        subscription: Name of the subscription; consumers of a topic with the same name share it.
        type: Type of the subscription.
        order: Whether each producer's messages have to arrive in order.
    """

    operations: ClassVar[tuple[str, ...]] = ("deliver", "lookup", "subscribe")
    opens: ClassVar[bool] = True
    virtual: ClassVar[bool] = False

    do: Literal["consume"] = "consume"
    of: Name
    subscription: Annotated[str, Field(min_length=1, max_length=80)] = "loadgen"
    type: Literal["exclusive", "shared", "failover", "key-shared"] = "exclusive"
    publishers: SkipJsonSchema[int] = 0
    """Number of clients in the group ``of``; set when the document is read."""
    size: SkipJsonSchema[int] = 0
    """Bytes of the publishers' messages; set when the document is read."""

    def namespace_of(self, index: int, namespaces: int) -> int:
        """Return the index of the namespace that contains the topic of the client's publisher."""
        return index % max(1, self.publishers) % namespaces

    def requests_each(self, seconds: float) -> float:
        """Return 0, because deliveries are counted as the publishers' requests."""
        return 0.0

    async def client(self, me: LoadClient) -> None:
        """Consume messages until the run ends, subscribing again whenever the consumer is lost."""
        topic = topic_of(me.namespace, self.of, me.plan.index % max(1, self.publishers))
        deliveries = _Deliveries(self, me)
        while not me.stopping.is_set():
            link = await self._subscribed(me, topic, deliveries)
            if link is None:
                return
            await me.first(deliveries.closed, link.lost)
            await me.sleep(0.1)

    async def _subscribed(self, me: LoadClient, topic: str, deliveries: _Deliveries) -> Link | None:
        deliveries.closed.clear()
        command = pb.CommandSubscribe(
            topic=topic,
            subscription=self.subscription,
            subType=pb.CommandSubscribe.SubType.Value(self.type.title().replace("-", "_")),
            consumer_id=0,
            durable=False,
            force_topic_creation=True,
        )
        deliveries.link, answer = await me.open(topic, "subscribe", request_frame(command))
        if answer.failed is not None:
            me.gave_up(answer.failed)
            return None
        if deliveries.link.connection is not None:
            deliveries.link.connection.send(_flow(PERMITS))
        me.back()
        return deliveries.link


class _Deliveries:
    """The messages that one consumer received, and the checks of their number and order.

    Mutable state: the numbers of received messages, and the messages not yet acknowledged.

    Bound: one number for each message that the producer sends.
    """

    def __init__(self, group: Consume, me: LoadClient) -> None:
        self._group = group
        self._me = me
        self.link = me.service
        self._seen: set[tuple[int, int]] = set()
        self._last = 0
        self._unacknowledged: list[pb.MessageIdData] = []
        self._used = 0
        self.closed = asyncio.Event()
        me.on_pushed = self._pushed

    def _pushed(self, command: pb.BaseCommand, payload: bytes) -> None:
        if command.type == pb.BaseCommand.CLOSE_CONSUMER:
            self.closed.set()
        elif command.type == pb.BaseCommand.MESSAGE:
            self._received(command.message, payload)

    def _received(self, command: pb.CommandMessage, tail: bytes) -> None:
        me, found = self._me, read_message(tail, self._group.size)
        due, item, problem = None, "", "a message that no publisher sent in this form"
        if found is not None:
            due, item = found.due, f"{found.client} {found.number}"
            problem = self._problem(found[:2], redelivered=command.redelivery_count > 0)
        row = me.begin_row("deliver", due, item)
        row.sent = row.due
        me.end_row(row, wrong=problem)
        if not self._unacknowledged:
            asyncio.get_running_loop().call_soon(self._acknowledge)
        self._unacknowledged.append(command.message_id)

    def _problem(self, message: tuple[int, int], *, redelivered: bool) -> str:
        if message in self._seen:
            return "" if redelivered else "a message came twice"
        self._seen.add(message)
        if self._group.type in ("shared", "key-shared") or redelivered:
            return ""
        last, self._last = self._last, max(self._last, message[1])
        return "a message arrived after a later one" if message[1] < last else ""

    def _acknowledge(self) -> None:
        """Acknowledge all messages received in this event-loop iteration with one command."""
        ids, self._unacknowledged = self._unacknowledged, []
        connection = self.link.connection
        if connection is None:
            return
        individual = pb.CommandAck.Individual
        ack = pb.CommandAck(consumer_id=0, ack_type=individual, message_id=ids)
        connection.send(frame_of(ack))
        self._used += len(ids)
        if self._used >= PERMITS // 2:
            connection.send(_flow(self._used))
            self._used = 0


def _flow(permits: int) -> bytes:
    return frame_of(pb.CommandFlow(consumer_id=0, messagePermits=permits))

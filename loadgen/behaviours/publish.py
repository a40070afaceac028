"""Clients that publish messages at intervals, each to its own topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

import proto.PulsarApi_pb2 as pb
from loadgen.engine.frames import HEADER_BYTES, PRODUCER_ID, Message, message_frame, request_frame
from loadgen.plan.fields import Bytes, Duration, Whole
from loadgen.plan.group import Group

if TYPE_CHECKING:
    import asyncio

    from loadgen.engine.client import LoadClient
    from loadgen.engine.connection import LoadConnection
    from loadgen.engine.link import Link


def topic_of(namespace: str, group: str, index: int) -> str:
    """Return the topic name of one client in a publishing group."""
    return f"persistent://{namespace}/loadgen-{group}-{index}"


class Publish(Group):
    """Publish messages at intervals, each client to its own topic.

    Attributes:
        every: Time between two messages of a client.
        size: Size of a message in bytes.
        keys: Number of different partition keys; 0 for messages without a key.
    """

    operations: ClassVar[tuple[str, ...]] = ("publish", "lookup", "producer")
    changes_topics: ClassVar[bool] = True
    opens: ClassVar[bool] = True
    virtual: ClassVar[bool] = False

    do: Literal["publish"] = "publish"
    every: Duration = 1.0
    size: Annotated[Bytes, Field(ge=HEADER_BYTES, le=5 << 20)] = 1024
    keys: Annotated[Whole, Field(ge=0, le=10_000)] = 0

    async def client(self, me: LoadClient) -> None:
        """Publish a message at each scheduled time, opening the producer again after a loss."""
        producer = _Producer(self, me)
        number = 0
        async for due in me.ticks(self.every):
            number += 1
            me.spawn(producer.publish(Message(me.plan.number, number, due)))


class _Producer:
    """The producer of one client, opened again after a loss.

    Mutable state: the connection of the open producer.
    """

    def __init__(self, group: Publish, me: LoadClient) -> None:
        self._group = group
        self._me = me
        self._topic = topic_of(me.namespace, group.name, me.plan.index)
        self._link: Link | None = None
        self._on: LoadConnection | None = None
        self._opening: asyncio.Task[None] | None = None

    async def publish(self, message: Message) -> None:
        """Send a message; open the producer first if necessary."""
        me, group = self._me, self._group
        if self._link is None or self._link.connection is not self._on or self._on is None:
            if self._opening is None or self._opening.done():
                self._opening = me.spawn(self._open())
            await self._opening
        link = self._link or me.service
        await me.request(
            link,
            "publish",
            lambda _: message_frame(message, group.size, group.keys),
            due=message.due,
            request_id=-message.number,
            item=str(message.number),
        )

    async def _open(self) -> None:
        """Look up the topic's broker, and open a producer there.

        If the producer cannot be opened, the messages fail too, and their rows record the failure.
        """
        me = self._me
        command = pb.CommandProducer(topic=self._topic, producer_id=PRODUCER_ID)
        link, answer = await me.open(self._topic, "producer", request_frame(command))
        if answer.failed is None:
            self._link, self._on = link, link.connection
            me.back()

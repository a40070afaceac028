"""The connections of ``produce-consume``: producers, and consumers that acknowledge messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import proto.PulsarApi_pb2 as pb
from loadgen.clients.connection import ClientConnection
from loadgen.clients.pacing import ReadBudget
from loadgen.scenarios.produce_beside_silent.messages import Opening
from loadgen.scenarios.produce_beside_silent.producing import ProducingConnection
from loadgen.scenarios.produce_consume.frames import (
    MessageStream,
    ack_frame,
    flow_frame,
    read_message,
    subscribe_frame,
    topic_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.clients.answer_stream import AnswerStream
    from loadgen.clients.context import ClientContext
    from loadgen.scenario import ClientPlan
    from loadgen.scenarios.produce_consume.deliveries import Deliveries
    from loadgen.scenarios.produce_consume.scenario import ProduceConsumeScenario

_PERMITS = 1_000
"""Messages that a consumer has room for; it gives new room when half of that is used."""


class ProducerConnection(ProducingConnection):
    """A producer's connection."""

    topic_of = staticmethod(topic_of)


class ConsumerConnection(ClientConnection):
    """A consumer that is never connected again; mutable state: what it has yet to acknowledge.

    Args:
        deliveries: Takes the messages; other consumers of the subscription may share it.
        on_news: Called after messages, and when the connection is lost.
    """

    def __init__(
        self,
        plan: ClientPlan,
        context: ClientContext[ProduceConsumeScenario],
        subscription: str,
        deliveries: Deliveries,
        on_news: Callable[[], None],
    ) -> None:
        super().__init__(plan, context)
        topic = topic_of(plan.namespace.name, plan.client)
        wanted = subscribe_frame(topic, subscription, context.scenario.subscription_type)
        self.deliveries = deliveries
        self._opening = Opening(topic, wanted)
        # It yields commands as the stream of answers does, and takes frames with payloads too.
        self._stream = cast("AnswerStream", MessageStream(self._message_received))
        self._unacknowledged: list[pb.MessageIdData] = []
        self._used = 0
        self._on_news = on_news

    async def open(self) -> str | None:
        """Subscribe; return why that failed, or None."""
        failure = await self._opening.open(self)
        if failure is None:
            self.send(flow_frame(_PERMITS))
            rate = self.context.scenario.read_rate_bytes_per_second
            if rate:
                self._budget = ReadBudget(rate, self.context.time.monotonic())
        return failure

    def buffer_updated(self, nbytes: int) -> None:
        """Take the bytes that were read, and acknowledge the messages in them at once."""
        super().buffer_updated(nbytes)
        if not self._unacknowledged:
            return
        self.send(ack_frame(self._unacknowledged))
        self._used += len(self._unacknowledged)
        self._unacknowledged.clear()
        if self._used >= _PERMITS // 2:
            self.send(flow_frame(self._used))
            self._used = 0
        self._on_news()

    def _message_received(self, message: pb.CommandMessage, tail: bytes) -> None:
        context = self.context
        found = read_message(tail, context.scenario.message_bytes)
        redelivered = message.redelivery_count > 0
        self.deliveries.take(found, context.time.seconds(), redelivered=redelivered)
        self._unacknowledged.append(message.message_id)

    def command_received(self, command: pb.BaseCommand) -> None:
        """Go on with the opening; a consumer that the broker closes is lost."""
        if command.type == pb.BaseCommand.CLOSE_CONSUMER:
            self._break_off("the broker closed the consumer")
            return
        frame = self._opening.next_frame(command)
        if frame is not None:
            self.send(frame)

    def refusal_received(self, request_id: int, reason: str) -> None:
        """Take a refusal of the subscription."""
        del request_id
        self._opening.end(reason)

    def bytes_received(self, nbytes: int) -> None:
        """Count bytes that were read."""
        self.context.counters.bytes += nbytes

    def ended(self, reason: str) -> None:
        """Note that it gets nothing more."""
        self._opening.end(reason)
        self.deliveries.lost_consumer = self.deliveries.lost_consumer or reason
        self._on_news()

    def leave(self) -> None:
        """Close the connection; it is not lost then."""
        self._closed = True
        self.close()

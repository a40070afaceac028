"""The producers that read their receipts: one message when it is due, whatever became of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from loadgen.clients.refusals import refusal_reason
from loadgen.clients.scheduled_client import ScheduledConnection
from loadgen.scenarios.produce_beside_silent.messages import Opening, producer_frame, topic_of

if TYPE_CHECKING:
    from loadgen.clients.scheduled_client import ScheduledClient


class ProducingConnection(ScheduledConnection):
    """A producer's connection; its mutable state is how far the producer is open."""

    topic_of = staticmethod(topic_of)
    """Returns a producer's topic, from its namespace and its number."""

    def __init__(self, client: ScheduledClient) -> None:
        super().__init__(client)
        topic = self.topic_of(client.plan.namespace.name, client.plan.client)
        self._opening = Opening(topic, producer_frame(topic))

    async def open(self) -> str | None:
        """Open the producer; return why that failed, or None."""
        return await self._opening.open(self)

    def command_received(self, command: pb.BaseCommand) -> None:
        """Settle the message that a receipt names, or go on with the opening."""
        kind, client = command.type, self.client
        if kind == pb.BaseCommand.SEND_RECEIPT:
            sequence_id = command.send_receipt.sequence_id
            if client.awaits(sequence_id):
                client.answered(sequence_id, command.ByteSize(), None)
        elif kind == pb.BaseCommand.SEND_ERROR:
            error = command.send_error
            client.refused(error.sequence_id, refusal_reason(error.error, error.message))
        elif kind == pb.BaseCommand.CLOSE_PRODUCER:
            self.close()  # made again, as a client does
        else:
            frame = self._opening.next_frame(command)
            if frame is not None:
                self.send(frame)

    def refusal_received(self, request_id: int, reason: str) -> None:
        """Take a refusal of the producer."""
        del request_id
        self._opening.end(reason)

    def ended(self, reason: str) -> None:
        """Tell the client that it has no connection."""
        self._opening.end(reason)
        super().ended(reason)

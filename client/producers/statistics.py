"""Statistics of producers, counted by the client."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(slots=True)
class SendCounts:
    """The running counts of a producer, which ProducerStatistics has under the same names."""

    messages_sent_total: int = 0
    bytes_sent_total: int = 0
    batches_sent_total: int = 0
    send_failures_total: int = 0
    send_timeouts_total: int = 0
    queue_full_total: int = 0
    memory_full_total: int = 0


@dataclass(frozen=True, slots=True)
class ProducerStatistics:
    """The current statistics of a producer.

    Fields are counts, unless their names say bytes.

    Attributes:
        topic: Full name of the topic.
        producer_name: The producer's name; "" before it is attached.
        is_connected: Whether the producer is attached.
        pending_messages: Messages or chunks with a queue slot and without a receipt.
        pending_bytes: Bytes that the producer's messages reserve of the client's memory.
        waiting_sends: Messages that wait for a queue slot or memory.
        messages_sent_total: Acknowledged messages.
        bytes_sent_total: Payload bytes of acknowledged messages.
        batches_sent_total: Entries sent as batches.
        send_failures_total: Messages that failed after they had a slot and memory.
        send_timeouts_total: Messages that failed because of the send timeout.
        queue_full_total: Messages refused because no queue slot was free.
        memory_full_total: Messages refused because no memory was free.
        reconnections_total: Number of times that the producer was attached again.
    """

    topic: str
    producer_name: str = ""
    is_connected: bool = False
    pending_messages: int = 0
    pending_bytes: int = 0
    waiting_sends: int = 0
    messages_sent_total: int = 0
    bytes_sent_total: int = 0
    batches_sent_total: int = 0
    send_failures_total: int = 0
    send_timeouts_total: int = 0
    queue_full_total: int = 0
    memory_full_total: int = 0
    reconnections_total: int = 0

    def plus(self, other: ProducerStatistics) -> ProducerStatistics:
        """Return the sum of these and another partition's statistics."""
        sums = {
            one.name: getattr(self, one.name) + getattr(other, one.name)
            for one in fields(self)
            if one.type == "int"
        }
        connected = self.is_connected and other.is_connected
        return ProducerStatistics(self.topic, self.producer_name, connected, **sums)

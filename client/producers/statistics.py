"""Figures of a producer."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(slots=True)
class SendCounts:
    """The counts of one producer, as they grow; ProducerStatistics says what they are."""

    sent: int = 0
    bytes: int = 0
    batches: int = 0
    failed: int = 0
    late: int = 0
    queue_full: int = 0
    memory_full: int = 0


@dataclass(frozen=True, slots=True)
class ProducerStatistics:
    """A snapshot of a producer. Units: bytes where named, otherwise counts.

    Attributes:
        topic: Full name.
        producer_name: Its name; "" until it was attached.
        is_connected: Whether it is attached now.
        pending_messages: Messages that have their place and no receipt.
        pending_bytes: What they hold of the client's memory.
        waiting_sends: Sends that wait for their place or memory.
        messages_sent_total: Messages that the broker has answered for.
        bytes_sent_total: Their payloads.
        batches_sent_total: Those of their entries that were batches.
        send_failures_total: Messages that failed after they were admitted.
        send_timeouts_total: Those of them that had no receipt in time.
        queue_full_total: Sends refused for want of a place.
        memory_full_total: Sends refused for want of memory.
        reconnections_total: How often it was attached again.
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
        """Return the figures of a topic's partitions together."""
        sums = {
            one.name: getattr(self, one.name) + getattr(other, one.name)
            for one in fields(self)
            if one.type == "int"
        }
        connected = self.is_connected and other.is_connected
        return ProducerStatistics(self.topic, self.producer_name, connected, **sums)

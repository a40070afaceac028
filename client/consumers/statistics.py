"""Figures about consumers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb
    from client.consumers.topic_consumer import TopicConsumer


@dataclass(frozen=True, slots=True)
class TopicConsumerStatistics:
    """One topic's, or partition's, part of a consumer.

    Attributes:
        topic: Full name.
        connected: Whether a connection serves it.
        messages_received: Messages that the program got.
        bytes_received: Bytes of their payloads.
        messages_queued: Messages that arrived and were not taken.
        bytes_queued: Their bytes.
        queue_size: Messages that may be queued or under way now.
        queue_growths: How often the queue became larger.
        queue_shrinks: How often it became smaller.
        permits_outstanding: Messages that the broker may send now.
        acknowledgements_pending: Acknowledgements that were not sent yet.
        unacknowledged: Entries that the ack timeout runs for.
        negatively_acknowledged: Entries that wait to be sent again.
        redelivery_requests: How often the broker was asked to send something again.
        incomplete_messages: Chunked messages of which not all has come.
        broken_entries: Entries that could not be read.
        reconnections: How often it was attached again.
    """

    topic: str
    connected: bool
    messages_received: int
    bytes_received: int
    messages_queued: int
    bytes_queued: int
    queue_size: int
    queue_growths: int
    queue_shrinks: int
    permits_outstanding: int
    acknowledgements_pending: int
    unacknowledged: int
    negatively_acknowledged: int
    redelivery_requests: int
    incomplete_messages: int
    broken_entries: int
    reconnections: int


@dataclass(frozen=True, slots=True)
class ConsumerStatistics:
    """A consumer or reader.

    Attributes:
        subscription: Name.
        consumer_name: Name.
        topics: The parts, one a topic or partition.
        waiting: How many wait for a message now.
        dead_letters: Messages that were sent to the dead-letter topic.
    """

    subscription: str
    consumer_name: str
    topics: tuple[TopicConsumerStatistics, ...]
    waiting: int
    dead_letters: int

    @property
    def messages_received(self) -> int:
        """Messages that the program got."""
        return sum(topic.messages_received for topic in self.topics)

    @property
    def bytes_received(self) -> int:
        """Bytes of their payloads."""
        return sum(topic.bytes_received for topic in self.topics)

    @property
    def messages_queued(self) -> int:
        """Messages that arrived and were not taken."""
        return sum(topic.messages_queued for topic in self.topics)

    @property
    def bytes_queued(self) -> int:
        """Their bytes."""
        return sum(topic.bytes_queued for topic in self.topics)

    @property
    def queue_size(self) -> int:
        """Messages that may be queued or under way now."""
        return sum(topic.queue_size for topic in self.topics)


@dataclass(frozen=True, slots=True)
class BrokerConsumerStats:
    """A topic's consumer as its broker sees it; rates are those of the last minute.

    Attributes:
        message_rate_out: Messages a second.
        message_throughput_out: Bytes a second.
        message_rate_redeliver: Messages a second that were sent again.
        consumer_name: Name.
        available_permits: Messages that may be sent now.
        unacked_messages: Messages that were sent and not acknowledged (Shared and Key_Shared).
        blocked_on_unacked_messages: Whether there are too many of them.
        address: The client's, as the broker sees it.
        connected_since: When it was attached.
        type: The subscription's.
        message_rate_expired: Messages a second of the subscription that were too old.
        message_backlog: Entries of the subscription that are not acknowledged.
    """

    message_rate_out: float
    message_throughput_out: float
    message_rate_redeliver: float
    consumer_name: str
    available_permits: int
    unacked_messages: int
    blocked_on_unacked_messages: bool
    address: str
    connected_since: str
    type: str
    message_rate_expired: float
    message_backlog: int


def topic_statistics(topic: TopicConsumer) -> TopicConsumerStatistics:
    """Return the figures of one topic's consumer."""
    incoming, handed_out = topic.incoming, topic.handed_out
    return TopicConsumerStatistics(
        topic=topic.topic,
        connected=topic.link.cnx is not None,
        messages_received=incoming.messages_received,
        bytes_received=incoming.bytes_received,
        messages_queued=incoming.queued,
        bytes_queued=incoming.received.queued_bytes,
        queue_size=incoming.queue.current_size,
        queue_growths=incoming.queue.growths,
        queue_shrinks=incoming.queue.shrinks,
        permits_outstanding=max(0, incoming.outstanding),
        acknowledgements_pending=handed_out.acks.pending,
        unacknowledged=handed_out.redelivery.unacknowledged,
        negatively_acknowledged=handed_out.redelivery.refused,
        redelivery_requests=topic.link.redelivery_requests,
        incomplete_messages=incoming.arrivals.incomplete,
        broken_entries=incoming.broken_entries,
        reconnections=topic.reconnections,
    )


def broker_stats(answer: pb.CommandConsumerStatsResponse) -> BrokerConsumerStats:
    """Return what a broker said of a consumer."""
    return BrokerConsumerStats(
        message_rate_out=answer.msgRateOut,
        message_throughput_out=answer.msgThroughputOut,
        message_rate_redeliver=answer.msgRateRedeliver,
        consumer_name=answer.consumerName,
        available_permits=answer.availablePermits,
        unacked_messages=answer.unackedMessages,
        blocked_on_unacked_messages=answer.blockedConsumerOnUnackedMsgs,
        address=answer.address,
        connected_since=answer.connectedSince,
        type=answer.type,
        message_rate_expired=answer.msgRateExpired,
        message_backlog=answer.msgBacklog,
    )

"""Statistics of consumers and readers, counted by the client or by the broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb
    from client.consumers.topic_consumer import TopicConsumer


@dataclass(frozen=True, slots=True)
class TopicConsumerStatistics:
    """The statistics of a consumer for one topic or partition.

    Attributes:
        topic: Full name of the topic.
        connected: Whether a connection serves the topic.
        messages_received: Messages that the application has received.
        bytes_received: Payload bytes that the application has received.
        messages_queued: Messages in the queue, not yet received by the application.
        bytes_queued: Bytes in the queue, not yet received by the application.
        queue_size: Current limit on messages queued in the client or on their way to it.
        queue_growths: Number of times that this limit was raised.
        queue_shrinks: Number of times that this limit was lowered.
        permits_outstanding: Permits that the broker has, to send this many further messages.
        acknowledgements_pending: Acknowledgements that are not sent yet.
        unacknowledged: Entries whose ack timeout is running.
        negatively_acknowledged: Negatively acknowledged entries that await redelivery.
        redelivery_requests: Redelivery requests sent.
        incomplete_messages: Chunked messages of which some chunks have not arrived yet.
        broken_entries: Entries that could not be decoded.
        reconnections: Number of times that the consumer was attached again.
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
    """The statistics of a consumer or reader, for all its topics.

    Attributes:
        subscription: Name of the subscription.
        consumer_name: Name of the consumer.
        topics: Statistics for each topic or partition.
        waiting: Number of callers waiting for a message.
        dead_letters: Number of messages sent to the dead-letter topic.
    """

    subscription: str
    consumer_name: str
    topics: tuple[TopicConsumerStatistics, ...]
    waiting: int
    dead_letters: int

    @property
    def messages_received(self) -> int:
        """Number of messages that the application has received."""
        return sum(topic.messages_received for topic in self.topics)

    @property
    def bytes_received(self) -> int:
        """Number of payload bytes that the application has received."""
        return sum(topic.bytes_received for topic in self.topics)

    @property
    def messages_queued(self) -> int:
        """Number of messages in the client's queue, not yet received by the application."""
        return sum(topic.messages_queued for topic in self.topics)

    @property
    def bytes_queued(self) -> int:
        """Number of bytes in the client's queue, not yet received by the application."""
        return sum(topic.bytes_queued for topic in self.topics)

    @property
    def queue_size(self) -> int:
        """Current limit on messages queued in the client or on their way to it."""
        return sum(topic.queue_size for topic in self.topics)


@dataclass(frozen=True, slots=True)
class BrokerConsumerStats:
    """A broker's statistics of a consumer on one topic.

    Rates are averages over the last minute.

    Attributes:
        message_rate_out: Messages sent to the consumer per second.
        message_throughput_out: Bytes sent to the consumer per second.
        message_rate_redeliver: Redelivered messages per second.
        consumer_name: Name of the consumer.
        available_permits: Number of messages that the broker may still send.
        unacked_messages: Unacknowledged messages (Shared and Key_Shared).
        blocked_on_unacked_messages: Whether the broker sends nothing because too many messages are
            unacknowledged.
        address: The client's address, as seen by the broker.
        connected_since: Time at which the consumer was attached.
        type: The subscription's type.
        message_rate_expired: Expired messages of the subscription per second.
        message_backlog: Unacknowledged entries of the subscription.
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
    """Return the statistics of one topic's consumer."""
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
    """Convert the broker's response into BrokerConsumerStats."""
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

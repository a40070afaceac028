"""Statistics of subscriptions, as JSON in the form of Pulsar's admin.

Source: upstream SubscriptionStatsImpl, NonPersistentSubscriptionStatsImpl.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import proto.PulsarApi_pb2 as pb
from broker.admin.resources.messages.consumer_stats import NOTHING_DRAINS, consumer_stats
from broker.messages.subscriptions.dispatchers.key_shared import KeySharedDispatcher
from broker.messages.subscriptions.dispatchers.shared import SharedDispatcher
from broker.messages.subscriptions.dispatchers.single_active import SingleActiveDispatcher
from server.tasks.cooperative import in_parts

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from broker.messages.subscriptions.consumer import Consumer
    from broker.messages.subscriptions.non_persistent.subscriptions import NonPersistentSubscription
    from broker.messages.subscriptions.subscription import Subscription


class Wanted(NamedTuple):
    """The optional parts of statistics that a request wants.

    Attributes:
        consumers: Whether to include each consumer.
        publishers: Whether to include each producer.
        earliest: Whether to include the publish time of each backlog's first message.
        sizes: Whether to include the size of each backlog.
    """

    consumers: bool = True
    publishers: bool = True
    earliest: bool = False
    sizes: bool = True


def subscription_stats(
    subscription: Subscription, wanted: Wanted
) -> Generator[None, None, dict[str, Any]]:
    """Return statistics of a persistent topic's subscription; yield after each consumer."""
    cursor, dispatcher = subscription.cursor, subscription.dispatcher
    shown = []
    for one in list(subscription.consumers) if wanted.consumers else ():
        shown.append((yield from consumer_stats(one, dispatcher)))
        yield
    keys = yield from _keys(subscription)
    holes_size = yield from _holes_size(subscription)
    consumers, backlog = subscription.consumers, cursor.backlog
    shared = dispatcher if isinstance(dispatcher, SharedDispatcher) else None
    delayed = len(shared.delayed) if shared is not None else 0
    durable = subscription.durable
    return {
        **_traffic(subscription, consumers),
        "msgBacklog": backlog,
        "backlogSize": bytes_left(subscription) if wanted.sizes else -1,
        "earliestMsgPublishTimeInBacklog": _earliest(subscription) if wanted.earliest else 0,
        "msgBacklogNoDelayed": backlog - delayed,
        "blockedSubscriptionOnUnackedMsgs": shared is not None and shared.blocked,
        "msgDelayed": delayed,
        "msgInReplay": len(shared.replay) if shared is not None else 0,
        "unackedMessages": sum(consumer.unacked for consumer in consumers),
        "type": _type_name(subscription.type),
        **_active(subscription),
        "msgRateExpired": 0.0,
        "msgExpired": 0,
        "totalMsgExpired": subscription.total_expired,
        "lastExpireTimestamp": subscription.last_expired_at,
        "lastConsumedFlowTimestamp": subscription.last_flow_at,
        "lastConsumedTimestamp": max((one.last_consumed_at for one in consumers), default=0),
        "lastAckedTimestamp": max((one.last_acked_at for one in consumers), default=0),
        "lastMarkDeleteAdvancedTimestamp": subscription.advanced_at,
        "consumers": shown,
        "isDurable": durable,
        "isReplicated": False,
        **keys,
        "nonContiguousDeletedMessagesRanges": cursor.acknowledged.count_ranges(),
        "nonContiguousDeletedMessagesRangesSerializedSize": holes_size,
        "delayedMessageIndexSizeInBytes": shared.delayed.size_bytes if shared is not None else 0,
        "subscriptionProperties": dict(cursor.properties),
        **_NOTHING_FILTERED,
        "durable": durable,
        "replicated": False,
    }


def direct_subscription_stats(
    subscription: NonPersistentSubscription, wanted: Wanted
) -> Generator[None, None, dict[str, Any]]:
    """Return statistics of a non-persistent topic's subscription; yield after each consumer."""
    shown = []
    for one in list(subscription.consumers) if wanted.consumers else ():
        shown.append((yield from consumer_stats(one)))
        yield
    consumers = subscription.consumers
    return {
        **_traffic(subscription, consumers),
        "type": _type_name(subscription.type),
        **_NOTHING_KEPT,
        "msgDropRate": 0.0,
        "consumers": shown,
        "isDurable": False,
        "durable": False,
        "isReplicated": False,
        "replicated": False,
    }


def _type_name(kind: pb.CommandSubscribe.SubType.ValueType | None) -> str:
    return "None" if kind is None else pb.CommandSubscribe.SubType.Name(kind)


def _traffic(
    subscription: Subscription | NonPersistentSubscription, consumers: Sequence[Consumer]
) -> dict[str, object]:
    rates = [consumer.rates.current for consumer in consumers]
    return {
        "msgRateOut": float(sum(one.messages_out for one in rates)),
        "msgThroughputOut": float(sum(one.bytes_out for one in rates)),
        "bytesOutCounter": subscription.bytes_out + sum(one.bytes_out for one in consumers),
        "msgOutCounter": subscription.messages_out + sum(one.messages_out for one in consumers),
        "msgRateRedeliver": float(sum(one.redelivered for one in rates)),
        "messageAckRate": float(sum(one.acknowledged for one in rates)),
        "chunkedMessageRate": 0.0,
    }


def _active(subscription: Subscription) -> dict[str, str]:
    dispatcher = subscription.dispatcher
    if isinstance(dispatcher, SingleActiveDispatcher) and dispatcher.active is not None:
        return {"activeConsumerName": dispatcher.active.name}
    return {}


def _keys(subscription: Subscription) -> Generator[None, None, dict[str, object]]:
    """Return the Key_Shared members of the statistics; zeros for subscriptions of other types."""
    dispatcher = subscription.dispatcher
    body: dict[str, object] = {
        "allowOutOfOrderDelivery": False,
        "consumersAfterMarkDeletePosition": {},
        **NOTHING_DRAINS,
    }
    if isinstance(dispatcher, KeySharedDispatcher):
        body |= {
            "keySharedMode": pb.KeySharedMode.Name(dispatcher.mode),
            "allowOutOfOrderDelivery": dispatcher.allows_disorder,
        }
    if isinstance(dispatcher, KeySharedDispatcher) and dispatcher.drains:
        draining = dispatcher.draining
        hashes = []
        for consumer in list(dispatcher.consumers):
            hashes += yield from draining.of(consumer)
            yield
        body |= {
            "drainingHashesCount": len(hashes),
            "drainingHashesClearedTotal": sum(map(draining.cleared_total, dispatcher.consumers)),
            "drainingHashesUnackedMessages": sum(one.unacked for one in hashes),
        }
    return body


def bytes_left(subscription: Subscription) -> int:
    """Return the bytes of all entries from the first unacknowledged one on."""
    ledger = subscription.topic.ledger
    return ledger.size_between(subscription.cursor.mark_delete, ledger.last_confirmed)


def _earliest(subscription: Subscription) -> int:
    """Return the publish time in ms of the first unacknowledged entry; -1 without a backlog."""
    first = subscription.topic.ledger.digest(subscription.cursor.first_left)
    return first.publish_time if first is not None else -1


def _holes_size(subscription: Subscription) -> Generator[None, None, int]:
    """Return roughly the bytes that upstream would store for out-of-order acknowledgments."""
    size = 0
    for ledger_id, bitmap in subscription.cursor.acknowledged.as_bitmaps().items():
        words = memoryview(bitmap.ljust(-(-len(bitmap) // 8) * 8, b"\0")).cast("Q")
        size += 2 + 1 + _varint_size(ledger_id)
        for some in in_parts(words):
            size += sum([1 - (-word.bit_length() // 7) for word in some if word])
            yield
    return size


def _varint_size(number: int) -> int:
    return max(1, -(-number.bit_length() // 7))


_NOTHING_FILTERED = {
    **dict.fromkeys(
        (
            "filterProcessedMsgCount",
            "filterAcceptedMsgCount",
            "filterRejectedMsgCount",
            "filterRescheduledMsgCount",
        ),
        0,
    ),
    **{
        f"dispatchThrottled{unit}EventsBy{limit}Limit": 0
        for unit in ("Msg", "Bytes")
        for limit in ("Subscription", "Topic", "Broker")
    },
}
_NOTHING_KEPT = {
    **dict.fromkeys(
        (
            "msgBacklog",
            "backlogSize",
            "earliestMsgPublishTimeInBacklog",
            "msgBacklogNoDelayed",
            "msgDelayed",
            "msgInReplay",
            "unackedMessages",
            "msgExpired",
            "totalMsgExpired",
            "lastExpireTimestamp",
            "lastConsumedFlowTimestamp",
            "lastConsumedTimestamp",
            "lastAckedTimestamp",
            "lastMarkDeleteAdvancedTimestamp",
            "nonContiguousDeletedMessagesRanges",
            "nonContiguousDeletedMessagesRangesSerializedSize",
            "delayedMessageIndexSizeInBytes",
        ),
        0,
    ),
    "msgRateExpired": 0.0,
    "blockedSubscriptionOnUnackedMsgs": False,
    "allowOutOfOrderDelivery": False,
    "consumersAfterMarkDeletePosition": {},
    "subscriptionProperties": {},
    **NOTHING_DRAINS,
    **_NOTHING_FILTERED,
}
"""The statistics' fields that have no meaning for a subscription of a non-persistent topic."""

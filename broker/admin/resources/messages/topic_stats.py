"""Statistics of topics, as Pulsar's admin shows them.

Source: upstream TopicStatsImpl, PartitionedTopicStatsImpl, NonPersistentTopicStatsImpl.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.admin.resources.messages.consumer_stats import (
    consumers_together,
    producer_stats,
    publishers_together,
)
from broker.admin.resources.messages.subjects import subscriptions_of
from broker.admin.resources.messages.subscription_stats import (
    direct_subscription_stats,
    subscription_stats,
)
from broker.messages.topic import NonPersistentTopic, PersistentTopic
from broker.subscriptions.non_persistent.subscriptions import NonPersistentSubscriptions

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from broker.admin.resources.messages.subscription_stats import Wanted
    from broker.messages.subscribed import Sent
    from broker.messages.topic import Topic

_HOLES = (
    "nonContiguousDeletedMessagesRanges",
    "nonContiguousDeletedMessagesRangesSerializedSize",
    "delayedMessageIndexSizeInBytes",
)


def topic_stats(topic: Topic, wanted: Wanted, owner: str) -> Generator[None, None, dict[str, Any]]:
    """Return the statistics of a topic; each producer and consumer of it is a step.

    Args:
        topic: A topic, or a partition.
        wanted: The parts that are asked for.
        owner: Host and port of the broker that serves it.
    """
    if isinstance(topic, PersistentTopic):
        return (yield from _of_stored(topic, wanted, owner))
    subscriptions = topic.subscriptions
    if not isinstance(topic, NonPersistentTopic) or not isinstance(
        subscriptions, NonPersistentSubscriptions
    ):
        raise TypeError(f"{topic} is of no kind that is known")
    shown, gone = {}, tuple(subscriptions.gone.values())
    for one in subscriptions:
        shown[one.name] = yield from direct_subscription_stats(one, wanted)
        yield
    publishers = yield from _publishers(topic, wanted)
    traffic = _traffic(topic, shown, gone)
    yield
    return {
        **traffic,
        **dict.fromkeys(("storageSize", "backlogSize"), 0),
        **dict.fromkeys(("backlogQuotaLimitSize", "backlogQuotaLimitTime"), 0),
        "oldestBacklogMessageAgeSeconds": 0,
        "publishRateLimitedTimes": topic.rate.limited_times,
        "earliestMsgPublishTimeInBacklogs": 0,
        **_NOT_HERE,
        "waitingPublishers": topic.producers.waiting,
        **dict.fromkeys(_HOLES, 0),
        "compaction": _compaction(),
        "ownerBroker": owner,
        "topicCreationTimeStamp": 0,
        "lastPublishTimeStamp": 0,
        "msgDropRate": 0.0,
        "publishers": [{**one, "msgDropRate": 0.0} for one in publishers],
        "subscriptions": shown,
        "replication": {},
    }


def _of_stored(
    topic: PersistentTopic, wanted: Wanted, owner: str
) -> Generator[None, None, dict[str, Any]]:
    shown, gone = {}, tuple(topic.subscriptions.gone.values())
    for one in subscriptions_of(topic):
        shown[one.name] = yield from subscription_stats(one, wanted)
        yield
    publishers = yield from _publishers(topic, wanted)
    traffic = _traffic(topic, shown, gone)
    yield
    policies, last = topic.policies, topic.compaction
    earliest = [one["earliestMsgPublishTimeInBacklog"] for one in shown.values()]
    return {
        **traffic,
        "storageSize": topic.ledger.size_bytes,
        "backlogSize": max((one["backlogSize"] for one in shown.values()), default=0),
        "backlogQuotaLimitSize": policies.size_quota.limit,
        "backlogQuotaLimitTime": policies.age_quota.limit,
        "oldestBacklogMessageAgeSeconds": -1,
        "publishRateLimitedTimes": topic.rate.limited_times,
        "earliestMsgPublishTimeInBacklogs": min(filter(None, earliest), default=0),
        **_NOT_HERE,
        "publishers": publishers,
        "waitingPublishers": topic.producers.waiting,
        "subscriptions": shown,
        "replication": {},
        "deduplicationStatus": "Enabled" if policies.deduplication else "Disabled",
        **{name: sum(one[name] for one in shown.values()) for name in _HOLES},
        "compaction": _compaction(
            last.removed, last.succeeded_at, last.failed_at, last.duration_ms
        ),
        "ownerBroker": owner,
        "topicCreationTimeStamp": topic.created_at,
        "lastPublishTimeStamp": topic.publish_times.last,
    }


def _traffic(
    topic: Topic, shown: Mapping[str, Mapping[str, Any]], gone: Sequence[Sent]
) -> dict[str, object]:
    figures, subscriptions = topic.statistics, shown.values()
    return {
        "msgRateIn": figures.message_rate,
        "msgThroughputIn": figures.byte_rate,
        "msgRateOut": float(sum(one["msgRateOut"] for one in subscriptions)),
        "msgThroughputOut": float(sum(one["msgThroughputOut"] for one in subscriptions)),
        "bytesInCounter": figures.size_bytes,
        "msgInCounter": figures.messages,
        "systemTopicBytesInCounter": 0,
        "bytesOutCounter": sum(one["bytesOutCounter"] for one in subscriptions)
        + sum(one.size_bytes for one in gone),
        "msgOutCounter": sum(one["msgOutCounter"] for one in subscriptions)
        + sum(one.messages for one in gone),
        "bytesOutInternalCounter": 0,
        "averageMsgSize": figures.average_size,
        "msgChunkPublished": figures.chunked_messages > 0,
    }


def _publishers(topic: Topic, wanted: Wanted) -> Generator[None, None, list[dict[str, object]]]:
    shown = []
    for one in list(topic.producers) if wanted.publishers else ():
        shown.append(producer_stats(one))
        yield
    return shown


def _compaction(
    removed: int = 0, succeeded_at: int = 0, failed_at: int = 0, duration_ms: int = 0
) -> dict[str, int]:
    return {
        "lastCompactionRemovedEventCount": removed,
        "lastCompactionSucceedTimestamp": succeeded_at,
        "lastCompactionFailedTimestamp": failed_at,
        "lastCompactionDurationTimeInMills": duration_ms,
    }


_NOT_HERE = dict.fromkeys(
    (
        "offloadedStorageSize",
        "lastOffloadLedgerId",
        "lastOffloadSuccessTimeStamp",
        "lastOffloadFailureTimeStamp",
        "ongoingTxnCount",
        "abortedTxnCount",
        "committedTxnCount",
    ),
    0,
)
"""Figures of offload and transactions, which there are not."""

# -- partitions together ---------------------------------------------------------------------------

_ONE_BY_ONE = frozenset(
    ("ownerBroker", "deduplicationStatus", "keySharedMode", "activeConsumerName")
)
_MOST = ("Timestamp", "TimeStamp")
_NOT_TOGETHER = frozenset(
    (
        "lastExpireTimestamp",
        "lastConsumedFlowTimestamp",
        "lastConsumedTimestamp",
        "lastAckedTimestamp",
        "lastMarkDeleteAdvancedTimestamp",
    )
)
"""Figures of subscriptions that upstream leaves out of those of partitioned topics."""
_LISTS: Mapping[str, Callable[[list[Any]], Generator[None, None, list[dict[str, Any]]]]] = {
    "consumers": consumers_together,
    "publishers": publishers_together,
}
_LIMITS = frozenset(("backlogQuotaLimitSize", "backlogQuotaLimitTime"))


def partitioned_stats(
    partitions: Mapping[str, dict[str, Any]], count: int, *, one_by_one: bool
) -> Generator[None, None, dict[str, Any]]:
    """Put the statistics of a partitioned topic together from those of its partitions, by name.

    A key of them, or of objects in them, in a step; and before, the keys of each.
    """
    together = yield from _together([*partitions.values()])
    if "oldestBacklogMessageAgeSeconds" in together:
        together["oldestBacklogMessageAgeSeconds"] = 0
    return {
        **together,
        "metadata": {"partitions": count, "deleted": False},
        "partitions": dict(partitions) if one_by_one else {},
    }


def _keys(bodies: Iterable[dict[str, Any]]) -> Generator[None, None, list[str]]:
    found: dict[str, None] = {}
    for body in bodies:
        found.update(dict.fromkeys(body))
        yield
    return [key for key in found if key not in _ONE_BY_ONE]


def _together(bodies: list[dict[str, Any]]) -> Generator[None, None, dict[str, Any]]:
    """Add figures up, and join objects by key."""
    together: dict[str, Any] = {}
    for key in (yield from _keys(bodies)):
        values = [body[key] for body in bodies if key in body]
        first = values[0]
        if key in _LISTS:
            together[key] = yield from _LISTS[key](values)
        elif isinstance(first, dict):
            together[key] = yield from _together(values)
        else:
            together[key] = first if isinstance(first, str) else _figure(key, values)
        yield
    return together


def _figure(key: str, values: list[Any]) -> object:
    if isinstance(values[0], bool):
        return any(values)
    if key in _NOT_TOGETHER:
        return 0
    if key.startswith("earliest"):
        return min(filter(None, values), default=0)
    return max(values) if key in _LIMITS or key.endswith(_MOST) else sum(values)

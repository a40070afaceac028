"""Statistics of topics, as JSON in the form of Pulsar's admin.

Source: upstream TopicStatsImpl, PartitionedTopicStatsImpl, NonPersistentTopicStatsImpl; fields left
out by upstream's ``add`` are zero in the sum of partitions.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Any

from broker.admin.resources.messages.consumer_stats import producer_stats
from broker.admin.resources.messages.subscription_stats import (
    bytes_left,
    direct_subscription_stats,
    subscription_stats,
)
from broker.messages.topic import PersistentTopic

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from broker.admin.resources.messages.subscription_stats import Wanted
    from broker.messages.subscriptions.consumer import Sent
    from broker.messages.topic import Topic

_AGE, _OF_SUBSCRIPTION = "oldestBacklogMessageAgeSeconds", "oldestBacklogMessageSubscriptionName"
_HOLES = (
    "nonContiguousDeletedMessagesRanges",
    "nonContiguousDeletedMessagesRangesSerializedSize",
    "delayedMessageIndexSizeInBytes",
)


def topic_stats(topic: Topic, wanted: Wanted, owner: str) -> Generator[None, None, dict[str, Any]]:
    """Return the statistics of a topic; yield after each producer and consumer.

    Args:
        topic: A topic, or a partition.
        wanted: The optional parts of the statistics that are requested.
        owner: Host and port of the topic's owner.
    """
    if isinstance(topic, PersistentTopic):
        return (yield from _of_stored(topic, wanted, owner))
    subscriptions = topic.subscriptions
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
    for one in topic.subscriptions:
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
        "backlogSize": max(map(bytes_left, topic.subscriptions), default=0),
        "backlogQuotaLimitSize": policies.size_quota.limit,
        "backlogQuotaLimitTime": policies.age_quota.limit,
        **_oldest(topic),
        "publishRateLimitedTimes": topic.rate.limited_times,
        "earliestMsgPublishTimeInBacklogs": min((one for one in earliest if one > 0), default=0),
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
        "msgChunkPublished": topic.has_chunks,
        **({} if topic.producers.epoch is None else {"topicEpoch": topic.producers.epoch}),
    }


def _oldest(topic: PersistentTopic) -> dict[str, object]:
    oldest = topic.oldest_backlog
    if oldest is None:
        return {_AGE: -1}
    age_ms = topic.clock.wall_ms() - oldest.since_ms
    return {_AGE: age_ms // 1000, _OF_SUBSCRIPTION: oldest.subscription}


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
"""Statistics about offloading and transactions, which are not supported."""

# -- sum of partitions ----------------------------------------------------------------------------

_ONE_BY_ONE = frozenset(
    (
        "ownerBroker",
        "deduplicationStatus",
        "activeConsumerName",
        "keySharedMode",
        "topicEpoch",
        _OF_SUBSCRIPTION,
    )
)
"""Fields of a partition that the sum of partitions lacks."""
_NOT_TOGETHER = frozenset(
    (
        "msgChunkPublished",
        "systemTopicBytesInCounter",
        "bytesOutInternalCounter",
        "lastOffloadLedgerId",
        "blockedSubscriptionOnUnackedMsgs",
        "lastCompactionRemovedEventCount",
        "lastCompactionSucceedTimestamp",
        "lastCompactionFailedTimestamp",
        "lastCompactionDurationTimeInMills",
        "lastExpireTimestamp",
        "lastConsumedFlowTimestamp",
        "lastConsumedTimestamp",
        "lastAckedTimestamp",
        "lastMarkDeleteAdvancedTimestamp",
        "avgMessagesPerEntry",
        "producerId",
    )
)
"""Fields that are 0 or false in the sum of partitions."""


def _least(values: list[Any]) -> object:
    return min(filter(None, values), default=0)


def _last(values: list[Any]) -> object:
    return values[-1]


_OTHERS: Mapping[str, Callable[[list[Any]], object]] = {
    "averageMsgSize": fmean,
    "backlogQuotaLimitSize": _last,
    "backlogQuotaLimitTime": _last,
    "topicCreationTimeStamp": _least,
    "earliestMsgPublishTimeInBacklogs": _least,
    "earliestMsgPublishTimeInBacklog": _least,
    "lastPublishTimeStamp": max,
    _AGE: lambda ages: max(0, *ages),
}
"""Functions that combine the fields of partitions that are not added up."""
_OF_CLIENTS: Mapping[str, Callable[[list[Any]], object]] = {
    **_OTHERS,
    **dict.fromkeys(
        (
            "blockedConsumerOnUnackedMsgs",
            "drainingHashesCount",
            "drainingHashesUnackedMessages",
            "firstMessagesSentTimestamp",
            "firstConsumedFlowTimestamp",
        ),
        _last,
    ),
    "chunkedMessageRate": lambda _: 0.0,
}
_CLIENTS = ("consumers", "publishers")
_OWN = frozenset(
    ("accessMode", "producerName", "address", "connectedSince", "clientVersion", "metadata")
)
"""Fields of a producer or consumer that are specific to a partition."""
_NEVER = "1970-01-01T00:00:00Z"


def partitioned_stats(
    partitions: Mapping[str, dict[str, Any]], count: int, *, one_by_one: bool
) -> Generator[None, None, dict[str, Any]]:
    """Return the statistics of a partitioned topic: the sums over its partitions.

    The generator yields after it has read the keys of a partition, and after it has combined the
    values of a key.
    """
    together = yield from _together([*partitions.values()])
    oldest = max(partitions.values(), key=lambda one: one[_AGE], default={_AGE: 0})
    return {
        **together,
        **({_OF_SUBSCRIPTION: oldest[_OF_SUBSCRIPTION]} if oldest[_AGE] > 0 else {}),
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
    """Combine partitions' statistics: add numbers, join clients by position, merge objects."""
    together: dict[str, Any] = {}
    for key in (yield from _keys(bodies)):
        values = [body[key] for body in bodies if key in body]
        if key in _CLIENTS:
            together[key] = yield from _clients(key, values)
        elif isinstance(values[0], dict):
            together[key] = yield from _together(values)
        else:
            together[key] = _joined(key, values, _OTHERS)
        yield
    return together


def _joined(
    key: str, values: list[Any], others: Mapping[str, Callable[[list[Any]], object]]
) -> object:
    first = values[0]
    if key in _NOT_TOGETHER:
        return type(first)()
    if key in others:
        return others[key](values)
    if isinstance(first, str | list):
        return values[-1]
    return any(values) if isinstance(first, bool) else sum(values)


def _clients(
    kind: str, partitions: list[list[dict[str, Any]]]
) -> Generator[None, None, list[dict[str, Any]]]:
    """Join the producers, or the consumers, of all partitions by their position in the lists.

    A partition's consumers are joined only if their number equals the number of positions so far,
    as when clients have a consumer at each partition.
    """
    places: list[list[dict[str, Any]]] = []
    for clients in partitions:
        first = 0
        if kind == "consumers" and len(clients) != len(places):
            first = len(places)
        for at, client in enumerate(clients, first):
            if at == len(places):
                places.append([])
            places[at].append(client)
            yield
    found = []
    for clients in places:
        found.append(_client(kind, clients))
        yield
    return found


def _client(kind: str, clients: list[dict[str, Any]]) -> dict[str, Any]:
    joined = {
        key: _joined(key, [one[key] for one in clients if key in one], _OF_CLIENTS)
        for key in clients[-1]
        if key not in _OWN
    }
    if kind == "consumers":
        joined |= {"lastAckedTime": _NEVER, "lastConsumedTime": _NEVER}
    return joined

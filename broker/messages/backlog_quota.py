"""Backlog quotas, which limit the size and age of a topic's unacknowledged messages.

Above a quota, producers are closed or the oldest messages are skipped. Quotas are checked when a
producer opens, and periodically; between two checks a backlog may exceed its quota.

Source: upstream BacklogQuotaManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from broker.messages.errors import quota_exceeded
from broker.messages.position import Position
from broker.policies.effective import QuotaAction

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.configuration.config import BrokerConfig
    from broker.messages.producers import Producers
    from broker.messages.stores.managed_ledger import ManagedLedger
    from broker.messages.subscriptions.subscription import Subscription
    from broker.messages.subscriptions.subscriptions import Subscriptions
    from broker.policies.effective import BacklogQuota, EffectivePolicies
    from limiter.clock import Clock


class QuotaTopic(Protocol):
    """The interface (typing Protocol) with the attributes of a topic that backlog quotas need."""

    config: BrokerConfig
    clock: Clock
    policies: EffectivePolicies
    producers: Producers
    ledger: ManagedLedger
    subscriptions: Subscriptions
    evictions: dict[str, int]
    oldest_backlog: OldestBacklog | None


_KEPT_PART = 0.9
"""The part of the quota's limit to which an eviction reduces a backlog (upstream: the target ratio
of dropBacklog)."""


def check_quota(topic: QuotaTopic) -> None:
    """Refuse a new producer if its topic exceeds a backlog quota that holds or fails producers.

    Raises:
        RequestError: The topic exceeds such a quota.
    """
    for quota in exceeded_quotas(topic):
        if quota.action is not QuotaAction.EVICT:
            raise quota_exceeded(hold=quota.action is QuotaAction.HOLD)
    if topic.policies.age_quota.action is not QuotaAction.EVICT:
        topic.oldest_backlog = oldest_backlog(topic, topic.subscriptions)


async def enforce_quota(topic: QuotaTopic) -> None:
    """Apply the actions of a topic's exceeded quotas: close producers or skip old messages.

    The topic's statistics show the oldest message that was found before.
    """
    topic.oldest_backlog = oldest_backlog(topic, topic.subscriptions)
    for quota in exceeded_quotas(topic):
        if quota.action is not QuotaAction.EVICT:
            topic.producers.disconnect(quota_exceeded(hold=quota.action is QuotaAction.HOLD))
        elif quota is topic.policies.size_quota:
            _evict_by_size(topic, quota.limit)
        else:
            await _evict_by_age(topic, quota.limit)


def exceeded_quotas(topic: QuotaTopic) -> list[BacklogQuota]:
    """Return the backlog quotas (for size and for age) that a topic exceeds."""
    found = []
    size, age = topic.policies.size_quota, topic.policies.age_quota
    if size.limit >= 0:
        backlog = max((one.cursor.backlog_bytes for one in topic.subscriptions), default=0)
        if backlog and backlog >= size.limit:
            found.append(size)
    if age.limit >= 0 and _is_older(topic, oldest_backlog(topic, topic.subscriptions), age.limit):
        found.append(age)
    return found


class OldestBacklog(NamedTuple):
    """The oldest message in the backlogs of a topic's subscriptions.

    Attributes:
        subscription: The name of a subscription whose backlog begins with the message.
        since_ms: The time from which the message's age counts, in ms since 1970.
    """

    subscription: str
    since_ms: int


def oldest_backlog(topic: QuotaTopic, among: Iterable[Subscription]) -> OldestBacklog | None:
    """Return the oldest message in backlogs; None without a backlog, or if its age is unknown."""
    slowest = _slowest(among)
    if slowest is None or not slowest.cursor.backlog:
        return None
    first = slowest.cursor.first_left
    if topic.config.publishing.precise_backlog_age:
        digest = topic.ledger.digest(first)
        return None if digest is None else OldestBacklog(slowest.name, digest.publish_time)
    # Only closed ledgers have a date; messages of the open ledger have no age.
    ledgers = (one for one in topic.ledger.ledgers if one.ledger_id == first.ledger_id)
    closed_at = next((one.closed_at for one in ledgers), 0)
    return OldestBacklog(slowest.name, closed_at) if closed_at else None


def _is_older(topic: QuotaTopic, oldest: OldestBacklog | None, seconds: int) -> bool:
    return oldest is not None and topic.clock.wall_ms() - oldest.since_ms > 1000 * seconds


def _slowest(among: Iterable[Subscription]) -> Subscription | None:
    durable = (one for one in among if one.durable)
    return min(durable, key=lambda one: one.cursor.first_left, default=None)


def _evictable(topic: QuotaTopic) -> list[Subscription]:
    """Return the subscriptions from which a backlog quota may skip messages.

    These are all except the internal subscription of compaction, as recorded from a real broker.
    """
    return [one for one in topic.subscriptions if not one.internal]


def _evict_by_size(topic: QuotaTopic, limit: int) -> None:
    slowest = max(_evictable(topic), key=lambda one: one.cursor.backlog_bytes, default=None)
    if slowest is None or not slowest.cursor.backlog or slowest.cursor.backlog_bytes < limit:
        return
    size, entries = slowest.cursor.backlog_bytes, slowest.cursor.backlog
    # Mean size = size / entries; whole entries only.
    too_many = int((size - _KEPT_PART * limit) * entries / size)
    if too_many:
        slowest.skip(too_many)
        topic.evictions["size"] += 1


async def _evict_by_age(topic: QuotaTopic, limit_seconds: int) -> None:
    slowest = _slowest(_evictable(topic))
    if slowest is not None and _is_older(topic, oldest_backlog(topic, [slowest]), limit_seconds):
        oldest_kept_ms = topic.clock.wall_ms() - int(limit_seconds * 1000 * _KEPT_PART)
        if await slowest.expire_older(oldest_kept_ms):
            topic.evictions["time"] += 1


def evict_oldest(topic: QuotaTopic) -> None:
    """If the size quota's action is to evict, skip the messages of the topic's oldest ledger.

    The messages are skipped in all subscriptions. Called when the store has no capacity for another
    message of the topic.
    """
    ledger = topic.ledger
    if topic.policies.size_quota.action is not QuotaAction.EVICT:
        return
    if ledger.ledgers[-1].entries:
        ledger.roll()
    oldest = next((one for one in ledger.ledgers if one.closed_at), None)
    if oldest is None:
        return
    for subscription in _evictable(topic):
        if subscription.cursor.first_left.ledger_id == oldest.ledger_id:
            subscription.skip_through(Position(oldest.ledger_id, oldest.entries - 1))
    topic.subscriptions.moved()

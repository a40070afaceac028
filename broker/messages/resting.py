"""Loaded topics at rest, which periodic work skips until there may be work again.

A topic rests from the end of a statistics period until a moment worked out from its state and
policies, or until a client, an operator or a timer of its own touches it.
"""

from __future__ import annotations

import heapq
from math import floor, inf
from typing import TYPE_CHECKING, NamedTuple

from broker.messages.backlog_quota import exceeded_quotas, oldest_backlog
from broker.messages.topic import PersistentTopic, Topic
from broker.policies.effective import DeleteMode

if TYPE_CHECKING:
    from broker.policies.effective import EffectivePolicies
    from limiter.clock import Clock
    from proto.names import TopicName

STEP_SECONDS = 1.0
"""The largest jump of the system's time, in seconds, that leaves topics at rest; a larger jump
wakes them all."""
_FEWEST_ENDS = 1_000


class _Rest(NamedTuple):
    until: float
    in_use: bool


class RestingTopics:
    """The loaded topics, each either awake (periodic work visits it) or at rest (skipped).

    Mutable state: the topics at rest, grouped by the second in which their rest ends, and a heap of
    these seconds. Bound: one entry a loaded topic, and two seconds a topic at rest plus 1,000.

    Attributes:
        looked_at: The clock's time when a monitor last checked which topics have clients.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._awake: dict[Topic, None] = {}
        self._resting: dict[Topic, _Rest] = {}
        self._ending: dict[float, dict[Topic, None]] = {}
        self._ends: list[float] = []
        self._wall_ahead = self._ahead()
        self.looked_at = clock.now()

    def _ahead(self) -> float:
        return self._clock.wall_ms() / 1000 - self._clock.now()

    def add(self, topic: Topic) -> None:
        """Add a newly loaded topic, which starts awake."""
        self._awake[topic] = None

    def discard(self, topic: Topic) -> None:
        """Remove a topic that is unloaded."""
        topic.touched()
        self._awake.pop(topic, None)

    def awake(self) -> tuple[Topic, ...]:
        """Return the topics that periodic work must visit now."""
        now, ended = self._clock.now(), list[Topic]()
        if abs(self._ahead() - self._wall_ahead) > STEP_SECONDS:
            self._wall_ahead = self._ahead()
            ended = list(self._resting)
        while self._ends and self._ends[0] <= now:
            ended += self._ending.pop(heapq.heappop(self._ends))
        for topic in ended:
            topic.touched()
        return tuple(self._awake)

    def wake_all(self) -> None:
        """Make periodic work visit all topics again."""
        for topic in list(self._resting):
            topic.touched()

    def rest(self, topic: Topic, until: float) -> None:
        """Let periodic work skip an awake topic until the given time of the clock.

        Do nothing if the time has passed or the topic is unloaded.
        """
        if until <= self._clock.now() or topic not in self._awake:
            return
        end = until if until == inf else floor(until)
        if end not in self._ending:
            self._ending[end] = {}
            heapq.heappush(self._ends, end)
        del self._awake[topic]
        topic.rests = True
        self._ending[end][topic] = None
        self._resting[topic] = _Rest(end, topic.in_use)

    def wake(self, topic: Topic) -> None:
        """Make periodic work visit a topic again."""
        topic.rests = False
        rest = self._resting.pop(topic)
        self._ending.get(rest.until, {}).pop(topic, None)
        if len(self._ends) > 2 * len(self._resting) + _FEWEST_ENDS:
            # Ends of rests long over may be months away.
            self._ending = {end: topics for end, topics in self._ending.items() if topics}
            self._ends = sorted(self._ending)
        if rest.in_use:
            topic.idle_since = max(topic.idle_since, self.looked_at)
        self._awake[topic] = None


def due_work(topic: Topic, rollover_seconds: float) -> dict[str, float]:
    """Return the earliest time at which each monitor may have work on an untouched topic.

    The keys are the names of ``TopicMonitors``' methods. The values are times of the topic's clock,
    in seconds; a time in the past means the next run, inf means never.

    Args:
        topic: The topic.
        rollover_seconds: Age at which an unneeded open ledger is dropped.
    """
    due = {"delete_unused": unused_at(topic)}
    if isinstance(topic, PersistentTopic):
        policies, oldest_ms = topic.policies, _oldest_ms(topic)
        ttl, age = policies.ttl_seconds, policies.age_quota.limit
        at_once = {
            "keep_sequence_ids": topic.deduplication.unsaved,
            "compact": topic.compaction.is_due,
            "enforce_quotas": exceeded_quotas(topic)
            or topic.oldest_backlog != oldest_backlog(topic, topic.subscriptions),
            "update_rates": policies.relative_to_publishing and max(topic.statistics.usual) >= 1,
        }
        at_ms = {
            "expire": oldest_ms + 1000 * ttl if ttl > 0 else inf,
            "trim": topic.unneeded_at_ms(rollover_seconds),
            "enforce_quotas": oldest_ms + 1000 * age if age >= 0 else inf,
        }
        ahead = topic.clock.now() - topic.clock.wall_ms() / 1000
        due |= {name: ahead + each / 1000 for name, each in at_ms.items()}
        due |= {name: -inf for name, is_due in at_once.items() if is_due}
        if (minutes := policies.subscription_expiration_minutes) > 0:
            unused = (one.unused_since for one in topic.subscriptions)
            due["expire_subscriptions"] = min(unused, default=inf) + 60 * minutes
    return due


def unused_at(topic: Topic) -> float:
    """Return the clock's time from which a topic may be deleted as unused; inf for never."""
    if not topic.made_by_use or topic.closing or topic.in_use:
        return inf
    caught_up = topic.policies.inactive_topics.mode is DeleteMode.CAUGHT_UP
    kept = any(one.cursor.backlog or not caught_up for one in topic.subscriptions)
    if kept or (caught_up and not isinstance(topic, PersistentTopic)):
        return inf
    return topic.idle_since + kept_seconds(topic.name, topic.policies)


def kept_seconds(name: TopicName, policies: EffectivePolicies) -> float:
    """Return the number of seconds for which an unused topic is kept before it may be deleted.

    A topic is kept at least as long as its messages are retained; inf if it is never deleted.

    Source: upstream PersistentTopic.checkGC.
    """
    rule, minutes = policies.inactive_topics, policies.retention.minutes if name.persistent else 0
    if not rule.delete or minutes < 0:
        return inf
    return max(rule.after_seconds, 60 * minutes)


def _oldest_ms(topic: PersistentTopic) -> float:
    """Return the publish time of the oldest backlog message, in ms since 1970.

    The result is inf without a backlog, and -inf if the message's entry is gone.
    """
    firsts = [one.cursor.first_left for one in topic.subscriptions if one.cursor.backlog]
    if not firsts:
        return inf
    oldest = topic.ledger.digest(min(firsts))
    return -inf if oldest is None else oldest.publish_time

"""Admin requests for statistics of topics and of partitioned topics.

Source: upstream PersistentTopicsBase.internalGetStats and its neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.admin.json_steps import json_answer, json_pieces
from broker.admin.paths import endpoint
from broker.admin.requests import flag, topic_name
from broker.admin.resources.messages.internal_stats import (
    internal_info,
    internal_stats,
    offline_stats,
)
from broker.admin.resources.messages.subjects import TopicResource, persistent
from broker.admin.resources.messages.subscription_stats import Wanted
from broker.admin.resources.messages.topic_stats import partitioned_stats, topic_stats
from broker.authorization.operations import TopicOperation
from broker.topics.rules import check_not_a_partition
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Generator

    from aiohttp import web

    from broker.messages.topic import Topic

_LEVELS = 5
"""Levels of a body's JSON that are written in steps: topic, subscriptions, subscription, consumers,
consumer; partitions add two levels: the list, and each partition."""
_WANTED = "excludeConsumers&excludePublishers&getEarliestTimeInBacklog&subscriptionBacklogSize"
_NO_PARTITIONS = "Partitioned Topic {} not found"
_NO_DIRECT_PARTITIONS = "Partitioned topic not found {}"


class StatsAdmin(TopicResource):
    """Handlers of admin requests for statistics."""

    @endpoint(
        f"GET {{topic}}/stats?{_WANTED}",
        TopicOperation.GET_STATS,
    )
    async def stats(self, request: web.Request) -> web.StreamResponse:
        """Return the statistics of a topic or partition."""
        topic, wanted = await self._topics.one(request), _wanted(request)
        return await self._answered(request, topic_stats(topic, wanted, self._context.broker_id))

    @endpoint(
        f"GET {{topic}}/partitioned-stats?perPartition&{_WANTED}",
        TopicOperation.GET_STATS,
    )
    async def partitioned_stats(self, request: web.Request) -> web.StreamResponse:
        """Return the statistics of a partitioned topic, and of each partition if requested."""
        topic, wanted = topic_name(request), _wanted(request)
        check_not_a_partition(topic)
        missing = _NO_PARTITIONS if topic.persistent else _NO_DIRECT_PARTITIONS
        count, topics = await self._partitions(request, missing)
        one_by_one = flag(request, "perPartition", default=True)

        def work() -> Generator[None, None, dict[str, Any]]:
            shown = {}
            for topic in topics:
                name = str(topic.name)
                shown[name] = yield from topic_stats(topic, wanted, self._context.broker_id)
            return (yield from partitioned_stats(shown, count, one_by_one=one_by_one))

        return await self._answered(request, work(), _LEVELS + 2)

    @endpoint("GET {topic}/internalStats?metadata", TopicOperation.GET_STATS)
    async def internal_stats(self, request: web.Request) -> web.StreamResponse:
        """Return the ledgers and cursors of a topic or partition."""
        name = topic_name(request)
        if not name.persistent:
            snapshot = await self._context.store.snapshot(name.namespace)
            if snapshot is None or not snapshot.holds(str(name).encode()):
                raise RestError(404, "Topic not found")
        topic = await self._topics.one(request)
        return await self._answered(
            request, internal_stats(topic, metadata=flag(request, "metadata"))
        )

    @endpoint("GET {topic}/partitioned-internalStats", TopicOperation.GET_STATS)
    async def partitioned_insides(self, request: web.Request) -> web.StreamResponse:
        """Return the ledgers and cursors of each partition."""
        count, topics = await self._partitions(request, _NO_PARTITIONS)

        def work() -> Generator[None, None, dict[str, Any]]:
            shown = {}
            for topic in topics:
                shown[str(topic.name)] = yield from internal_stats(topic, metadata=False)
            metadata = {"partitions": count, "deleted": False}
            return {"metadata": metadata, "partitions": shown}

        return await self._answered(request, work(), _LEVELS + 2)

    @endpoint("GET {topic}/internal-info", TopicOperation.GET_STATS)
    async def internal_info(self, request: web.Request) -> object:
        """Return the ledgers and cursors, in stored form, of a topic or of each partition."""
        topic = topic_name(request)
        if await self._topics.partitions(topic) is None:
            return internal_info(persistent(await self._topics.load(topic)))
        topics = await self._topics.all_stored(request)

        def work() -> Generator[None, None, dict[str, Any]]:
            shown = {}
            for one in topics:
                shown[str(one.name)] = internal_info(one)
                yield
            return {"version": 0, "partitions": shown}

        return await self._answered(request, work(), 2)

    @endpoint("GET {topic}/backlog", TopicOperation.GET_BACKLOG_SIZE)
    async def backlog(self, request: web.Request) -> object:
        """Return the sizes of a topic's ledgers, and the backlog of each subscription.

        All are zero without ledgers: for a partitioned or a missing topic (recorded).
        """
        name = topic_name(request)
        snapshot = await self._context.snapshot(name.namespace)
        there = name.persistent and snapshot.contains(name)
        topic = persistent(await self._topics.load(name)) if there else None
        stats = offline_stats(name, topic, self._context.config.advertised_address)
        return {**stats, "statGeneratedAt": self._topics.loaded.clock.wall_ms()}

    async def _answered(
        self,
        request: web.Request,
        shown: Generator[None, None, dict[str, Any]],
        levels: int = _LEVELS,
    ) -> web.StreamResponse:
        """Respond with a JSON body that is built and encoded in several steps."""

        def work() -> Generator[None, None, list[bytes]]:
            found = yield from shown
            pieces = yield from json_pieces(found, levels)
            partitions = found.get("partitions")
            while partitions and isinstance(partitions, dict):
                partitions.popitem()  # Freed in steps, too.
                yield
            return pieces

        return await json_answer(request, await self._steps.take(work()))

    async def _partitions(self, request: web.Request, missing: str) -> tuple[int, list[Topic]]:
        topic = topic_name(request)
        count = await self._topics.partitions_if_any(topic)
        if count is None:
            raise RestError(404, missing.format(topic))
        await self._topics.use_partitions(request, topic, count)
        return count, await self._topics.all(request)


def _wanted(request: web.Request) -> Wanted:
    return Wanted(
        consumers=not flag(request, "excludeConsumers"),
        publishers=not flag(request, "excludePublishers"),
        earliest=flag(request, "getEarliestTimeInBacklog"),
        sizes=flag(request, "subscriptionBacklogSize", default=True),
    )

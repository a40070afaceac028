"""Admin requests about topics' lifecycle: delete, terminate, truncate, unload, trim, compact.

Source: upstream PersistentTopicsBase.internalDeleteTopicAsync, internalTerminate,
internalTruncateTopicAsync, internalUnloadTopic, internalTrimTopic and their neighbours.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.admin.json_steps import json_answer, json_pieces
from broker.admin.openapi import schemas
from broker.admin.owners import ServedElsewhereError, check_owner, check_owner_of_all
from broker.admin.paths import endpoint
from broker.admin.requests import flag, topic_name
from broker.admin.resources.messages.message_ids import given_target, message_id
from broker.admin.resources.messages.subjects import (
    MessageTopics,
    TopicResource,
    check_persistent,
    last_id,
    persistent,
)
from broker.authorization.operations import Level, NamespaceOperation, TopicOperation
from broker.messages.loading.topic_deletion import check_unused
from broker.messages.position import EARLIEST
from broker.topics.rules import check_not_a_partition, not_found, partition_name
from proto.names import TopicName
from server.http import RestError
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

    from broker.admin.context import AdminContext

logger = logging.getLogger(__name__)


class LifecycleAdmin(TopicResource):
    """Handlers of admin requests about the lifecycle of topics."""

    @endpoint("DELETE {topic}?force", NamespaceOperation.DELETE_TOPIC)
    async def delete(self, request: web.Request) -> None:
        """Delete a topic; with ``force``, even while clients use it."""
        topic = topic_name(request)
        await check_owner(self._context, topic)
        await self._context.messaging.deletion.delete(topic, force=flag(request, "force"))

    @endpoint("DELETE {topic}/partitions?force", NamespaceOperation.DELETE_TOPIC)
    async def delete_partitioned(self, request: web.Request) -> None:
        """Delete a partitioned topic and its partitions; with ``force``, even if in use."""
        topic, loaded_topics = topic_name(request), self._topics.loaded
        partitions = await self._partitions(topic)
        await check_owner_of_all(self._context, partitions)
        # Reconnecting clients cannot recreate a partition before all names are deleted.
        async with loaded_topics.shut(topic):
            while len(partitions) < len(more := await self._partitions(topic)):
                partitions = more  # Grown meanwhile.
                await check_owner_of_all(self._context, partitions)
            used = [one async for one in in_turns(partitions) if self._is_used(one)]
            async for one in in_turns(used):
                loaded = loaded_topics.loaded(one)
                if loaded is not None and not flag(request, "force"):
                    check_unused(loaded)
            async for one in in_turns(used):
                if self._is_used(one):  # Otherwise deleted meanwhile.
                    await self._context.messaging.deletion.delete(one, force=True)
            await self._context.topics.delete_partitioned(topic)

    async def _partitions(self, topic: TopicName) -> list[TopicName]:
        snapshot = await self._context.store.snapshot(topic.namespace)
        count = snapshot.partitioned.get(str(topic), 0) if snapshot is not None else 0
        return [
            TopicName.parse(partition_name(topic, index)) async for index in in_turns(range(count))
        ]

    def _is_used(self, topic: TopicName) -> bool:
        return self._topics.loaded.loaded(topic) is not None or self._topics.is_stored(topic)

    @endpoint("POST {topic}/terminate", TopicOperation.TERMINATE, done=(200,), refused=(406,))
    async def terminate(self, request: web.Request) -> object:
        """Terminate a topic, which then refuses messages; return the id of the last message."""
        if not topic_name(request).persistent:
            raise RestError(406, "Need to provide a persistent topic name")
        refusal = "Termination of a partitioned topic is not allowed"
        topic = await self._topics.stored(request, refusal)
        await self._topics.loaded.terminate(topic.name)
        return message_id(last_id(topic))

    @endpoint("POST {topic}/terminate/partitions", TopicOperation.TERMINATE, done=(200,))
    async def terminate_partitions(self, request: web.Request) -> web.StreamResponse:
        """Terminate all partitions of a topic; return the ids of the last messages."""
        if await self._topics.partitions_if_any(topic_name(request)) is None:
            raise RestError(
                405,
                "Termination of a non-partitioned topic is not allowed using partitioned-terminate"
                ", please use terminate commands",
            )
        last = {}
        async for topic in self._topics.each(await self._topics.all_stored(request)):
            await self._topics.loaded.terminate(topic.name)
            last[str(topic.name.partition_index)] = message_id(last_id(topic))
        return await json_answer(request, await self._steps.take(json_pieces(last, 1)))

    @endpoint("DELETE {topic}/truncate", Level.TENANT_ADMIN)
    async def truncate(self, request: web.Request) -> None:
        """Drop all backlogs and closed ledgers of a topic, in all partitions."""
        if not topic_name(request).persistent:
            raise RestError(412, "unsupport truncate")
        topics = await self._topics.all_stored(request)
        async for topic in self._topics.each(topics):
            topic.truncate()
        await self._topics.flushed(*topics)

    @endpoint("PUT {topic}/unload", TopicOperation.UNLOAD)
    async def unload(self, request: web.Request) -> None:
        """Close a topic, or all its partitions; clients reconnect."""
        names = await self._topics.names(request)
        await check_owner_of_all(self._context, names)
        async for name in in_turns(names):
            was_loaded = await self._topics.loaded.unload(name)
            if not was_loaded and not name.persistent and name == topic_name(request):
                raise not_found(name)  # Nothing of the topic is stored (recorded).

    @endpoint("POST {topic}/trim", TopicOperation.TRIM_TOPIC, done=(200,))
    async def trim(self, request: web.Request) -> None:
        """Drop the ledgers that a topic no longer needs, in all partitions."""
        check_persistent(request, "Trim")
        async for topic in self._topics.each(await self._topics.all_stored(request)):
            topic.subscriptions.moved()

    @endpoint("POST {topic}/createMissedPartitions", NamespaceOperation.CREATE_TOPIC)
    async def create_partitions(self, request: web.Request) -> None:
        """Create the missing partitions of a partitioned topic."""
        topic = topic_name(request)
        check_not_a_partition(topic)
        if await self._topics.partitions_if_any(topic) is None:
            raise RestError(404, f"Topic {topic} does not exist")
        await self._context.topics.create_missing(topic)

    # -- compaction ---------------------------------------------------------------------------

    @endpoint("GET {topic}/compaction", TopicOperation.COMPACT)
    async def compaction_status(self, request: web.Request) -> object:
        """Return the status and the last error of a topic's compaction."""
        compaction = (await self._topics.stored(request)).compaction
        return {"status": compaction.status.value, "lastError": compaction.last_error}

    @endpoint("PUT {topic}/compaction", TopicOperation.COMPACT)
    async def compact(self, request: web.Request) -> None:
        """Start the compaction of a topic, in all partitions."""
        async for topic in self._topics.each(await self._topics.all_stored(request)):
            topic.compaction.start()

    # -- offload: not supported -------------------------------------------------------------------

    @endpoint("GET {topic}/offload", TopicOperation.OFFLOAD)
    async def offload_status(self, request: web.Request) -> object:
        """Report that a topic was never offloaded."""
        await self._topics.stored(request)
        first = message_id(EARLIEST)
        return {"status": "NOT_RUN", "lastError": "", "firstUnoffloadedMessage": first}

    @endpoint("PUT {topic}/offload", TopicOperation.OFFLOAD, body=schemas.MESSAGE_ID)
    async def offload(self, request: web.Request) -> None:
        """Refuse to offload a topic: there is no storage to offload to."""
        await given_target(request)
        await self._topics.stored(request)
        raise RestError(412, "there is nothing to offload messages to")


async def grow(context: AdminContext, topic: TopicName, count: int) -> None:
    """Add partitions to a partitioned topic, each with the first partition's subscriptions.

    Source: upstream PersistentTopicsBase.internalUpdatePartitionedTopicAsync,
    createSubscriptions.

    Missing partitions are created, too, but without subscriptions (recorded). A repeated request
    completes a growth that failed halfway.

    Raises:
        RefusedError: The topic is not partitioned, or the number is too large.
        RestError, ServedElsewhereError: This broker cannot serve the first partition.
        MessageStoreError: The subscriptions cannot be stored.
    """
    topics, first = MessageTopics(context), _partition(topic, 0)
    snapshot = await context.store.snapshot(topic.namespace)
    before = snapshot.partitioned.get(str(topic), 0) if snapshot is not None else 0
    new = before if before != count else await _first_unused(topics, topic, count)
    given: Mapping[str, Mapping[str, str]] = {}
    if snapshot is not None and 0 < new < count and snapshot.contains(first):
        await check_owner(context, first)
        given = await _subscriptions(topics, first)
    with topics.loaded.growing.growing(topic, new, given):
        await context.topics.grow(topic, count)
        if given:
            async for index in in_turns(range(new, count)):
                await _load(topics, _partition(topic, index))
    if topic.persistent and count > before:
        await context.topics.create_missing(topic)


async def _first_unused(topics: MessageTopics, topic: TopicName, count: int) -> int:
    """Return the first index, from 1 on, after all partitions with stored data."""
    async for index in in_turns(range(count - 1, 0, -1)):
        if topics.is_stored(_partition(topic, index)):
            return index + 1
    return min(1, count)


async def _subscriptions(
    topics: MessageTopics, first: TopicName
) -> Mapping[str, Mapping[str, str]]:
    """Return the properties of a partition's durable subscriptions, by subscription name.

    The result is empty for a partition without stored data.
    """
    if not topics.is_stored(first):
        return {}
    found = persistent(await topics.load(first)).subscriptions
    return {one.name: dict(one.cursor.properties) for one in found if one.durable}


async def _load(topics: MessageTopics, partition: TopicName) -> None:
    try:
        await topics.flushed(persistent(await topics.load(partition)))
    except ServedElsewhereError:
        logger.warning(
            "%s begins without the subscriptions of its topic: another broker serves it", partition
        )


def _partition(topic: TopicName, index: int) -> TopicName:
    return TopicName.parse(partition_name(topic, index))

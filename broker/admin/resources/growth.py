"""Growth of a partitioned topic, with its subscriptions.

Source: upstream PersistentTopicsBase.internalUpdatePartitionedTopicAsync, createSubscriptions.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.admin.owners import ServedElsewhereError, check_owner
from broker.admin.resources.messages.subjects import MessageTopics, persistent
from broker.topics.rules import partition_name
from proto.names import TopicName
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.admin.context import AdminContext

logger = logging.getLogger(__name__)


async def grow(context: AdminContext, topic: TopicName, count: int) -> None:
    """Add partitions to a partitioned topic, with the subscriptions of its first partition.

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
    """Return the index after the last partition with stored data, ignoring the first."""
    async for index in in_turns(range(count - 1, 0, -1)):
        if topics.is_stored(_partition(topic, index)):
            return index + 1
    return min(1, count)


async def _subscriptions(
    topics: MessageTopics, first: TopicName
) -> Mapping[str, Mapping[str, str]]:
    """Return the properties of the durable subscriptions of a partition, empty if not stored."""
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

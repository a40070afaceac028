"""Deletion of topics by REST, with messages and subscriptions.

Source: upstream PersistentTopicsBase.internalDeleteTopicAsync, internalDeletePartitionedTopic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.owners import check_owner, check_owner_of_all
from broker.admin.paths import Endpoint
from broker.admin.requests import done, flag, topic_name
from broker.admin.resources.messages.subjects import TOPIC_PATH
from broker.authorization.operations import NamespaceOperation
from broker.messages.errors import MessageStoreError
from broker.messages.loading.loaded_topics import check_unused
from broker.topics.rules import partition_name
from proto.names import TopicName
from server.http import RestError
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from aiohttp import web

    from broker.admin.context import AdminContext


class DeletionAdmin:
    """Requests to delete topics."""

    def __init__(self, context: AdminContext) -> None:
        self._context = context

    @Endpoint("DELETE", TOPIC_PATH, NamespaceOperation.DELETE_TOPIC, query=("force",))
    async def delete(self, request: web.Request) -> web.Response:
        """Delete a topic; with force also if clients use the topic."""
        topic = topic_name(request)
        await check_owner(self._context, topic)
        await self._delete(topic, force=flag(request, "force"))
        return done()

    async def _delete(self, topic: TopicName, *, force: bool) -> None:
        try:
            await self._context.messaging.loaded_topics.delete(topic, force=force)
        except MessageStoreError as error:
            raise RestError(500, str(error)) from None

    @Endpoint(
        "DELETE", f"{TOPIC_PATH}/partitions", NamespaceOperation.DELETE_TOPIC, query=("force",)
    )
    async def delete_partitioned(self, request: web.Request) -> web.Response:
        """Delete a partitioned topic with its partitions; with force also if clients use them."""
        topic, messaging = topic_name(request), self._context.messaging
        partitions = await self._partitions(topic)
        await check_owner_of_all(self._context, partitions)
        # Reconnecting clients cannot recreate a partition before all names are deleted.
        async with messaging.loaded_topics.shut(topic):
            while len(partitions) < len(more := await self._partitions(topic)):
                partitions = more  # Grown meanwhile.
                await check_owner_of_all(self._context, partitions)
            used = [one async for one in in_turns(partitions) if self._is_used(one)]
            async for one in in_turns(used):
                loaded = messaging.loaded_topics.loaded(one)
                if loaded is not None and not flag(request, "force"):
                    check_unused(loaded)
            async for one in in_turns(used):
                if self._is_used(one):  # Otherwise deleted meanwhile.
                    await self._delete(one, force=True)
            await self._context.topics.delete_partitioned(topic)
        return done()

    async def _partitions(self, topic: TopicName) -> list[TopicName]:
        snapshot = await self._context.store.snapshot(topic.namespace)
        count = snapshot.partitioned.get(str(topic), 0) if snapshot is not None else 0
        return [
            TopicName.parse(partition_name(topic, index)) async for index in in_turns(range(count))
        ]

    def _is_used(self, topic: TopicName) -> bool:
        messaging = self._context.messaging
        return messaging.loaded_topics.loaded(topic) is not None or messaging.store.holds(
            str(topic)
        )

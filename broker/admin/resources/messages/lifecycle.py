"""Lifecycle of topics by REST: terminate, truncate, unload, trim.

Source: upstream PersistentTopicsBase.internalTerminate, internalTruncateTopicAsync,
internalUnloadTopic, internalTrimTopic and their neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.json_steps import json_answer, json_pieces
from broker.admin.openapi import schemas
from broker.admin.owners import check_owner_of_all
from broker.admin.paths import Endpoint, Takes
from broker.admin.requests import done, topic_name
from broker.admin.resources.messages.message_ids import given_target, message_id
from broker.admin.resources.messages.subjects import (
    TOPIC_PATH,
    MessageTopics,
    check_persistent,
    last_id,
    subscriptions_of,
)
from broker.authorization.operations import Level, NamespaceOperation, TopicOperation
from broker.messages.position import EARLIEST
from broker.topics.rules import not_found
from server.http import RestError, json_response
from server.tasks.cooperative import Steps, in_turns

if TYPE_CHECKING:
    from aiohttp import web

    from broker.admin.context import AdminContext


class LifecycleAdmin:
    """Requests about the life of topics."""

    def __init__(self, context: AdminContext) -> None:
        self._context = context
        self._topics = MessageTopics(context)
        self._steps = Steps()

    @Endpoint(
        "POST", f"{TOPIC_PATH}/terminate", TopicOperation.TERMINATE, done=(200,), refused=(406,)
    )
    async def terminate(self, request: web.Request) -> web.Response:
        """Terminate a topic, which then refuses messages; return the id of the last message."""
        if not topic_name(request).persistent:
            raise RestError(406, "Need to provide a persistent topic name")
        refusal = "Termination of a partitioned topic is not allowed"
        topic = await self._topics.stored(request, refusal)
        await self._topics.loaded.terminate(topic.name)
        return json_response(message_id(last_id(topic)))

    @Endpoint("POST", f"{TOPIC_PATH}/terminate/partitions", TopicOperation.TERMINATE, done=(200,))
    async def terminate_partitions(self, request: web.Request) -> web.StreamResponse:
        """Terminate all partitions of a topic; return the ids of the last messages."""
        if await self._topics.partitions(topic_name(request)) is None:
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

    @Endpoint("DELETE", f"{TOPIC_PATH}/truncate", Level.TENANT_ADMIN)
    async def truncate(self, request: web.Request) -> web.Response:
        """Drop the backlogs of a topic and its closed ledgers, in all partitions."""
        if not topic_name(request).persistent:
            raise RestError(412, "unsupport truncate")
        async for topic in self._topics.each(await self._topics.all_stored(request)):
            topic.truncate()
        return done()

    @Endpoint("PUT", f"{TOPIC_PATH}/unload", TopicOperation.UNLOAD)
    async def unload(self, request: web.Request) -> web.Response:
        """Close a topic or all its partitions; clients reconnect."""
        names = await self._topics.names(request)
        await check_owner_of_all(self._context, names)
        async for name in in_turns(names):
            was_loaded = await self._topics.loaded.unload(name)
            if not was_loaded and not name.persistent and name == topic_name(request):
                raise not_found(name)  # Nothing of the topic is stored (recorded).
        return done()

    @Endpoint("POST", f"{TOPIC_PATH}/trim", TopicOperation.TRIM_TOPIC, done=(200,))
    async def trim(self, request: web.Request) -> web.Response:
        """Drop the unneeded ledgers of a topic, in all partitions."""
        check_persistent(request, "Trim")
        async for topic in self._topics.each(await self._topics.all_stored(request)):
            subscriptions_of(topic).moved()
        return done(200)

    @Endpoint("POST", f"{TOPIC_PATH}/createMissedPartitions", NamespaceOperation.CREATE_TOPIC)
    async def create_partitions(self, request: web.Request) -> web.Response:
        """Create the missing partitions of a partitioned topic."""
        topic = topic_name(request)
        if await self._topics.partitions(topic) is None:
            raise RestError(404, f"Topic {topic} does not exist")
        await self._context.topics.create_missing(topic)
        return done()

    # -- offload: not supported -------------------------------------------------------------------

    @Endpoint("GET", f"{TOPIC_PATH}/offload", TopicOperation.OFFLOAD)
    async def offload_status(self, request: web.Request) -> web.Response:
        """Report that a topic was never offloaded."""
        await self._topics.stored(request)
        first = message_id(EARLIEST)
        return json_response(
            {"status": "NOT_RUN", "lastError": "", "firstUnoffloadedMessage": first}
        )

    @Endpoint(
        "PUT", f"{TOPIC_PATH}/offload", TopicOperation.OFFLOAD, Takes.JSON, body=schemas.MESSAGE_ID
    )
    async def offload(self, request: web.Request) -> web.Response:
        """Refuse to offload a topic."""
        await given_target(request)
        await self._topics.stored(request)
        raise RestError(412, "there is nothing to offload messages to")

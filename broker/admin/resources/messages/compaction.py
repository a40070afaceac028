"""Compaction by REST: start and status.

Source: upstream PersistentTopics.compact and compactionStatus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.paths import Endpoint
from broker.admin.requests import done
from broker.admin.resources.messages.subjects import TOPIC_PATH, MessageTopics
from broker.authorization.operations import TopicOperation
from server.http import json_response

if TYPE_CHECKING:
    from aiohttp import web

    from broker.admin.context import AdminContext


class CompactionAdmin:
    """Requests about the compaction of topics."""

    def __init__(self, context: AdminContext) -> None:
        self._topics = MessageTopics(context)

    @Endpoint("GET", f"{TOPIC_PATH}/compaction", TopicOperation.COMPACT)
    async def status(self, request: web.Request) -> web.Response:
        """Return the status and the last error of a topic's compaction."""
        compaction = (await self._topics.stored(request)).compaction
        return json_response(
            {"status": compaction.status.value, "lastError": compaction.last_error}
        )

    @Endpoint("PUT", f"{TOPIC_PATH}/compaction", TopicOperation.COMPACT)
    async def start(self, request: web.Request) -> web.Response:
        """Start the compaction of a topic, in all partitions."""
        async for topic in self._topics.each(await self._topics.all_stored(request)):
            topic.compaction.start()
        return done()

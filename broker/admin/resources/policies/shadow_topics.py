"""Shadow topics: refused, as no topic is copied to another.

Source: upstream PersistentTopicsBase.internalSetShadowTopic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.bodies import json_body, strings
from broker.admin.openapi import schemas
from broker.admin.paths import Endpoint, Takes
from broker.admin.requests import done
from broker.admin.resources.policies.endpoints import shown
from broker.admin.resources.policies.row import Empty
from broker.admin.resources.policies.subjects import TOPIC_PATH, topic_with_policies
from broker.authorization.operations import PolicyName
from proto.names import InvalidNameError, TopicName
from server.http import RestError

if TYPE_CHECKING:
    from aiohttp import web

    from broker.admin.context import AdminContext

_PATH = f"{TOPIC_PATH}/shadowTopics"


class ShadowTopicAdmin:
    """Requests about the shadow topics of a topic."""

    def __init__(self, context: AdminContext) -> None:
        self._context = context

    @Endpoint("GET", _PATH, PolicyName.SHADOW_TOPIC)
    async def get(self, request: web.Request) -> web.Response:
        """Return an empty response: topics have no shadow topics."""
        await topic_with_policies(self._context, request)
        return shown(None, Empty.NO_BODY)

    @Endpoint("PUT", _PATH, PolicyName.SHADOW_TOPIC, Takes.JSON, body=schemas.TEXTS, refused=(403,))
    async def set(self, request: web.Request) -> web.Response:
        """Refuse shadow topics, invalid shadow topics in upstream's words."""
        names = strings(await json_body(request), "the body")
        topic = await topic_with_policies(self._context, request)
        if not names:
            text = "Cannot specify empty shadow topics, please use remove command instead."
            raise RestError(412, text)
        for name in names:
            await self._check_exists(name)
        raise RestError(
            412, f"Messages are not copied to shadow topics here: set none for {topic}."
        )

    async def _check_exists(self, name: str) -> None:
        try:
            shadow = TopicName.parse(name)
        except InvalidNameError:
            raise RestError(403, f"Invalid shadow topic name: {name[:100]}") from None
        snapshot = await self._context.store.snapshot(shadow.namespace)
        known = snapshot is not None and (
            snapshot.contains(shadow) or str(shadow) in snapshot.partitioned
        )
        if not known:
            raise RestError(412, f"Shadow topic [{name[:100]}] not exists.")

    @Endpoint("DELETE", _PATH, PolicyName.SHADOW_TOPIC)
    async def remove(self, request: web.Request) -> web.Response:
        """Accept the removal of shadow topics as a no-op."""
        await topic_with_policies(self._context, request)
        return done()

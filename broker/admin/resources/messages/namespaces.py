"""Admin requests about the messages of all loaded topics of a namespace or bundle.

Source: upstream NamespacesBase.internalClearNamespaceBacklog, internalUnsubscribeNamespace and the
same for bundles; for unloading see ownership.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.owners import ServedElsewhereError
from broker.admin.paths import endpoint
from broker.admin.requests import asked_bundle, namespace_name, segment
from broker.admin.resources.messages.subjects import TopicResource
from broker.authorization.operations import NamespaceOperation
from broker.messages.topic import PersistentTopic
from server.http import RestError
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from aiohttp import web

    from broker.messages.subscriptions.subscription import Subscription
    from broker.messages.topic import Topic


class NamespaceMessageAdmin(TopicResource):
    """Handlers of admin requests about the messages of a whole namespace or bundle."""

    async def _asked(self, request: web.Request) -> list[Topic]:
        """Return the loaded topics of the namespace, or of the bundle, in the request's path."""
        namespace = namespace_name(request)
        bundles = await self._context.bundles(namespace)
        loaded = list(self._context.messaging.loaded_topics.within(namespace))
        if "bundle" not in request.match_info:
            return loaded
        bundle = asked_bundle(request, bundles)
        names = in_turns(loaded)
        return [topic async for topic in names if bundle.holds(topic.full_name.encode())]

    async def _each(self, topics: list[Topic]) -> AsyncIterator[Topic]:
        """Yield topics over several event-loop turns.

        A topic unloaded meanwhile is loaded again if this broker serves it.
        """
        async for topic in in_turns(topics):
            if not topic.closing:
                yield topic
                continue
            try:
                again = await self._topics.load(topic.name)
            except ServedElsewhereError:
                continue
            except RestError as error:
                if error.status != 404:
                    raise
            else:
                yield again

    async def _flushed(self, topics: list[Topic]) -> None:
        async for topic in self._each(topics):
            await self._topics.flushed(topic)

    @endpoint(
        "POST namespaces/{namespace}/clearBacklog/{subscription}", NamespaceOperation.CLEAR_BACKLOG
    )
    @endpoint(
        "POST namespaces/{namespace}/{bundle}/clearBacklog/{subscription}",
        NamespaceOperation.CLEAR_BACKLOG,
    )
    async def clear_one(self, request: web.Request) -> None:
        """Clear the backlogs of all subscriptions with the given name in a namespace or bundle."""
        strict = self._context.rules.fails_as_upstream
        topics, name = await self._asked(request), segment(request, "subscription")
        async for topic in self._each(topics):
            if isinstance(topic, PersistentTopic):
                found = topic.subscriptions.get(name)
                if found is not None:
                    found.skip_through(topic.ledger.last_confirmed)
                elif strict:
                    raise RestError(500, "Cursor not found")
        await self._flushed(topics)

    @endpoint("POST namespaces/{namespace}/clearBacklog", NamespaceOperation.CLEAR_BACKLOG)
    @endpoint("POST namespaces/{namespace}/{bundle}/clearBacklog", NamespaceOperation.CLEAR_BACKLOG)
    async def clear(self, request: web.Request) -> None:
        """Clear the backlogs of all subscriptions in a namespace or bundle."""
        internal = self._context.rules.clears_internal_backlogs
        topics = await self._asked(request)
        async for topic in self._each(topics):
            if isinstance(topic, PersistentTopic):
                topic.subscriptions.clear_backlogs(internal=internal)
        await self._flushed(topics)

    @endpoint(
        "POST namespaces/{namespace}/unsubscribe/{subscription}", NamespaceOperation.UNSUBSCRIBE
    )
    @endpoint(
        "POST namespaces/{namespace}/{bundle}/unsubscribe/{subscription}",
        NamespaceOperation.UNSUBSCRIBE,
    )
    async def unsubscribe(self, request: web.Request) -> None:
        """Delete all subscriptions with the given name in a namespace or bundle.

        Raises:
            RestError: 412, a subscription has consumers.
        """
        name = segment(request, "subscription")
        topics = await self._asked(request)
        found = [one async for one in in_turns(_named(topics, name))]
        if any(subscription.consumers for subscription in found):
            raise RestError(412, "Subscription has active connected consumers")
        async for topic in self._each(topics):
            for subscription in _named([topic], name):
                subscription.delete()
        await self._flushed(topics)


def _named(topics: list[Topic], name: str) -> Iterator[Subscription]:
    for topic in topics:
        if isinstance(topic, PersistentTopic):
            found = topic.subscriptions.get(name)
            if found is not None:
                yield found

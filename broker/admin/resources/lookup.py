"""Lookups over HTTP, which return a topic's broker: ``/lookup/v2/topic``.

Source: upstream v2.TopicLookup, LookupData. A redirect names a candidate broker, which becomes the
owner of the topic's bundle when it receives the redirected lookup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.owners import is_authoritative, owner_of, redirect_to
from broker.admin.paths import Resource, endpoint
from broker.admin.requests import NAMESPACE_REASON, TOPIC_REASON, plain, topic_name
from broker.authorization.operations import NamespaceOperation, TopicOperation
from broker.bundles import bundle_of
from broker.policies.policy import NO_NAMESPACE
from proto.names import is_blank
from server.http import RestError

if TYPE_CHECKING:
    from aiohttp import web

    from broker.ownership.ownership import Owner
    from proto.names import TopicName

_LISTENER_HEADER = "X-Pulsar-ListenerName"


class LookupAdmin(Resource):
    """Handlers of lookups of topics over HTTP."""

    @endpoint(
        "GET /lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}?listenerName&authoritative",
        TopicOperation.LOOKUP,
    )
    async def lookup(self, request: web.Request) -> object:
        """Return the addresses of a topic's broker, even if the topic is missing.

        The namespace must exist.
        """
        topic = self._topic(request)
        permit = self._context.lookup_places.try_acquire(object())  # Released below: no owner.
        if permit is None:
            raise RestError(503, "too many lookups are under way (maxConcurrentLookupRequest)")
        with permit:
            return await self._lookup(request, topic)

    async def _lookup(self, request: web.Request, topic: TopicName) -> object:
        if not self._context.urls().any_service:
            raise RestError(503, "the process is starting")
        await self._context.bundles(topic.namespace)  # A missing namespace is refused.
        owner = await self._context.lookups.counted(self._owner(request, topic))
        if not owner.decided:
            raise redirect_to(owner, request)
        urls = owner.urls
        named = {
            "brokerUrl": urls.service,
            "brokerUrlTls": urls.service_tls,
            "httpUrl": urls.web,
            "httpUrlTls": urls.web_tls,
            "nativeUrl": urls.service,
        }
        # Old C++ clients fail without brokerUrlSsl, always empty.
        found = {name: url for name, url in named.items() if url}
        return {**found, "brokerUrlSsl": ""}

    async def _owner(self, request: web.Request, topic: TopicName) -> Owner:
        _check_listener(request)
        return await owner_of(self._context, topic, authoritative=is_authoritative(request))

    def _topic(self, request: web.Request) -> TopicName:
        try:
            return topic_name(request, NAMESPACE_REASON)
        except RestError as error:
            # Upstream's server fails at an invalid name.
            fails = self._context.rules.fails_as_upstream and error.reason == TOPIC_REASON
            raise RestError(500 if fails else error.status, error.reason) from None

    @endpoint(
        "GET /lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}/bundle",
        NamespaceOperation.GET_BUNDLE,
    )
    async def bundle(self, request: web.Request) -> object:
        """Return the bundle that contains a topic."""
        topic = self._topic(request)
        policies = await self._context.store.policies(topic.namespace)
        if policies is None and not self._context.rules.missing_namespace_has_bundle:
            raise RestError(404, NO_NAMESPACE)
        bundles = 1 if policies is None else policies.bundles
        return plain(str(bundle_of(str(topic).encode(), bundles)))


def _check_listener(request: web.Request) -> None:
    name: str = request.query.get("listenerName") or request.headers.get(_LISTENER_HEADER) or ""
    if not is_blank(name):
        raise RestError(412, f"the broker do not have {name[:100]} listener")

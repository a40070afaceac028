"""Endpoints that get, set and remove the policies in ``broker.policies.table``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aiohttp import web

from broker.admin.bodies import given_body, json_body
from broker.admin.paths import Resource, Takes, endpoint
from broker.admin.requests import flag, namespace_name
from broker.admin.resources.policies.checks import Asked, checked
from broker.admin.resources.policies.quotas import compared_quotas
from broker.admin.resources.policies.subjects import PolicyResource
from broker.authorization.operations import Level
from broker.policies.policy import NO_CONTENT, Null
from broker.policies.table import TABLE
from broker.policies.values import PRIMITIVES, schema_of
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.admin.context import AdminContext
    from broker.admin.paths import Endpoint
    from broker.policies.policy import Place, Policy
    from proto.names import NamespaceName, TopicName


class PolicyAdmin(Resource):
    """Handlers of admin requests about the policies in ``broker.policies.table``."""

    def endpoints(self) -> Iterator[Endpoint]:
        """Yield the endpoints of all policies in ``broker.policies.table``."""
        for one in TABLE:
            if one.namespace is not None:
                yield from _Calls(self._context, one, one.namespace).endpoints()
            if one.topic is not None:
                yield from _OfTopics(self._context, one, one.topic).endpoints()


def shown(value: object, unset: object) -> object:
    """Return the response to a request for a policy's value.

    Args:
        value: The policy's value; None if it is not set.
        unset: The response if the policy is not set.
    """
    value = unset if value is None else value
    return web.Response(status=204) if value is NO_CONTENT else value


_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")


class _Calls(PolicyResource):
    """Handlers of admin requests about one policy of namespaces."""

    _below = "namespaces/{namespace}"
    _applied = ""
    _takes: Takes | None = None

    def __init__(self, context: AdminContext, policy: Policy, place: Place) -> None:
        super().__init__(context)
        self._policy = policy
        self._place = place

    def endpoints(self) -> Iterator[Endpoint]:
        """Yield the endpoints that get, set and remove the policy."""
        policy, place = self._policy, self._place
        needs = policy.needs or Level.TENANT_ADMIN
        path = f"{self._below}/{place.path}"
        changes = Level.SUPERUSER if self._only_superusers_change else needs
        shown_by = _query(self._applied, self._scope)
        yield endpoint(f"GET {path}{shown_by}", needs, done=(200, 204), handler=self.get)
        yield endpoint(
            f"{place.verb} {path}{_query(place.parameter, self._scope)}",
            changes,
            self._takes,
            body=None if place.parameter else schema_of(policy.read),
            body_required=False,
            done=(204, 200),
            handler=self.set,
        )
        if place.removable:
            removed_by = f"DELETE {path}{_query(self._scope)}"
            yield endpoint(removed_by, changes, handler=self.remove)

    @property
    def _only_superusers_change(self) -> bool:
        return self._policy.of_superusers

    @property
    def _scope(self) -> str:
        """The parameter that asks for a topic's global policy; empty if the policy has none."""
        of_topics = self._place is self._policy.topic
        return "isGlobal" if of_topics and self._policy.has_global else ""

    def _is_global(self, request: web.Request) -> bool:
        return bool(self._scope) and flag(request, self._scope)

    async def _subject(self, request: web.Request) -> NamespaceName | TopicName:
        """Return the existing namespace or topic in the path of a request for a change."""
        return await self._namespace(request, missing=self._place.unchanged)

    def _set(self, of: NamespaceName | TopicName, *, globally: bool = False) -> object:
        """Return the value set for the policy, or None if the policy is not set."""
        return self._kept(of, globally=globally).get(self._policy.key)

    async def get(self, request: web.Request) -> object:
        """Return a namespace's value of the policy."""
        namespace = await self._namespace(request, missing=self._place.unshown)
        return shown(self._set(namespace), self._place.unset)

    async def set(self, request: web.Request) -> None:
        """Set the policy for a namespace; as upstream, the value is checked first."""
        body = await self._body(request)
        value = self._checked(body, namespace_name(request))
        await self._keep(await self._subject(request), self._policy.key, value)

    def _checked(
        self, body: object, of: NamespaceName | TopicName, *, globally: bool = False
    ) -> object:
        """Return the value to store for a request's body; None removes the policy."""
        value = self._policy.read(body)
        if body is None and self._place.null is not Null.VALUE:
            return None
        own = self._kept(of, globally=globally)
        quotas = compared_quotas(self._context.message_policies, of, own)
        asked = Asked(self._place.refusal, self._context.config, quotas)
        return checked(self._policy, value, asked)

    async def _body(self, request: web.Request) -> object:
        if not self._place.parameter:
            primitive = self._place.null is Null.VALUE and self._policy.read in PRIMITIVES
            return await (given_body if primitive else json_body)(request)
        text = request.query.get(self._place.parameter) or None
        if text is not None and not _WHOLE_NUMBER.fullmatch(text):
            raise RestError(404, f"{self._place.parameter}={text[:40]!r} should be a whole number")
        return text

    async def remove(self, request: web.Request) -> None:
        """Remove the policy from a namespace or topic."""
        subject, globally = await self._subject(request), self._is_global(request)
        await self._keep(subject, self._policy.key, None, globally=globally)


def _query(*parameters: str) -> str:
    named = "&".join(filter(None, parameters))
    return f"?{named}" if named else ""


class _OfTopics(_Calls):
    _below = "{topic}"
    _applied = "applied"
    _takes = Takes.JSON
    _only_superusers_change = False

    async def _subject(self, request: web.Request) -> TopicName:
        return await self._topic(request)

    async def set(self, request: web.Request) -> None:
        """Set the policy for an existing topic."""
        body = await self._body(request)
        self._policy.read(body)  # An unreadable body is refused even for a missing topic.
        topic, globally = await self._subject(request), self._is_global(request)
        if body is not None or self._place.null is not Null.KEEPS:
            value = self._checked(body, topic, globally=globally)
            await self._keep(topic, self._policy.key, value, globally=globally)

    async def get(self, request: web.Request) -> object:
        """Return a topic's value of the policy; with ``applied``, the effective value."""
        topic, value = await self._subject(request), None
        if flag(request, "applied") and self._policy.applied:
            value = self._set(topic.namespace)
            if value is None:
                in_force = self._context.message_policies.of_namespace(topic.namespace)
                value = self._policy.shown(in_force)
        of_topic = self._set(topic, globally=self._is_global(request))
        return shown(value if of_topic is None else of_topic, self._place.unset)

"""Endpoints that get, set and remove the policies in ``broker.policies.table``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aiohttp import web

from broker.admin.bodies import given_body, json_body
from broker.admin.paths import Resource, Takes, endpoint
from broker.admin.requests import flag
from broker.admin.resources.policies.checks import Asked, checked
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
    _shown_by = ""
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
        yield endpoint(f"GET {path}{self._shown_by}", needs, done=(200, 204), handler=self.get)
        yield endpoint(
            f"{place.verb} {path}" + (f"?{place.parameter}" if place.parameter else ""),
            changes,
            self._takes,
            body=None if place.parameter else schema_of(policy.read),
            body_required=False,
            done=(204, 200),
            handler=self.set,
        )
        if place.removable:
            yield endpoint(f"DELETE {path}", changes, handler=self.remove)

    @property
    def _only_superusers_change(self) -> bool:
        return self._policy.of_superusers

    async def _subject(
        self, request: web.Request, *, changes: bool = True
    ) -> NamespaceName | TopicName:
        """Return the existing namespace or topic in the request's path."""
        by_policies = changes and self._place.misses_policies
        return await self._namespace(request, by_policies=by_policies)

    def _set(self, of: NamespaceName | TopicName) -> object:
        """Return the value set for the policy, or None if the policy is not set."""
        return self._kept(of).get(self._policy.key)

    async def get(self, request: web.Request) -> object:
        """Return a namespace's value of the policy."""
        return shown(self._set(await self._subject(request, changes=False)), self._place.unset)

    async def set(self, request: web.Request) -> None:
        """Set the policy for a namespace or topic."""
        body = await self._body(request)
        value = self._policy.read(body)
        subject = await self._subject(request)
        if body is None and self._place.null is Null.KEEPS:
            return
        if body is None and self._place.null is Null.REMOVES:
            value = None
        else:
            asked = Asked(self._place.refusal, self._context.config, self._kept(subject))
            value = checked(self._policy, value, asked)
        await self._keep(subject, self._policy.key, value)

    async def _body(self, request: web.Request) -> object:
        if not self._place.parameter:
            primitive = self._place.null is Null.VALUE and self._policy.read in PRIMITIVES
            return await (given_body if primitive else json_body)(request)
        text = request.query.get(self._place.parameter)
        if text is not None and not _WHOLE_NUMBER.fullmatch(text):
            raise RestError(404, f"{self._place.parameter}={text[:40]!r} should be a whole number")
        return text

    async def remove(self, request: web.Request) -> None:
        """Remove the policy from a namespace or topic."""
        await self._keep(await self._subject(request), self._policy.key, None)


class _OfTopics(_Calls):
    _below = "{topic}"
    _shown_by = "?applied"
    _takes = Takes.JSON
    _only_superusers_change = False

    async def _subject(self, request: web.Request, *, changes: bool = True) -> TopicName:
        return await self._topic(request)

    async def get(self, request: web.Request) -> object:
        """Return a topic's value of the policy; with ``applied``, the effective value."""
        topic, value = await self._subject(request), None
        if flag(request, "applied") and self._policy.applied:
            value = self._set(topic.namespace)
            if value is None:
                value = self._policy.shown(self._context.message_policies.defaults)
        of_topic = self._set(topic)
        return shown(value if of_topic is None else of_topic, self._place.unset)

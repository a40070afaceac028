"""Offload policies of namespaces and topics: stored and shown; nothing is offloaded.

Source: upstream NamespacesBase, PersistentTopicsBase; recorded answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.admin.bodies import given_body, json_body
from broker.admin.context import NO_NAMESPACE
from broker.admin.paths import Endpoint, Takes
from broker.admin.requests import done, flag, namespace_name
from broker.admin.resources.policies.endpoints import shown
from broker.admin.resources.policies.placement import offload_values as values
from broker.admin.resources.policies.row import Empty
from broker.admin.resources.policies.subjects import (
    NAMESPACE_PATH,
    TOPIC_PATH,
    existing_namespace,
    topic_with_policies,
)
from broker.admin.resources.policies.values import long_number, schema_of
from broker.authorization.operations import PolicyName
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiohttp import web

    from broker.admin.context import AdminContext
    from proto.names import NamespaceName, TopicName

_NUMBERS = (
    ("offloadThreshold", "offload_threshold", -1, 204),
    ("offloadThresholdInSeconds", "offload_threshold_in_seconds", -1, 200),
    ("offloadDeletionLagMs", "offload_deletion_lag_ms", Empty.NO_BODY, 204),
)
"""Paths of numbers, their old names, the response for a number not set (without a body only such a
number is removable), and the status after setting."""


class OffloadAdmin:
    """Requests about offload policies."""

    def __init__(self, context: AdminContext) -> None:
        self._context = context

    def numbers(self) -> Iterator[Endpoint]:
        """Yield the endpoints of single numbers of a namespace's offload policies."""
        needs, json = PolicyName.OFFLOAD, Takes.APPLICATION_JSON
        for path, old, unset, status in _NUMBERS:
            number, below = _Number(self, old, unset, status), f"{NAMESPACE_PATH}/{path}"
            yield Endpoint("GET", below, needs, json, handler=number.get)
            body = schema_of(long_number)
            yield Endpoint("PUT", below, needs, json, body=body, handler=number.set)
            if unset is Empty.NO_BODY:
                yield Endpoint("DELETE", below, needs, json, handler=number.remove)

    def kept(self, of: NamespaceName | TopicName) -> Mapping[str, Any]:
        """Return the policies set for a namespace or topic."""
        return self._context.message_policies.document(of)

    async def namespace(self, request: web.Request) -> NamespaceName:
        """Return the existing namespace in the path."""
        return await existing_namespace(self._context, request)

    # -- of namespaces ------------------------------------------------------------------------

    @Endpoint(
        "GET", f"{NAMESPACE_PATH}/offloadPolicies", PolicyName.OFFLOAD, Takes.APPLICATION_JSON
    )
    async def get(self, request: web.Request) -> web.Response:
        """Return the offload policies of a namespace."""
        namespace = await self.namespace(request)
        return _shown(values.of_namespace(self.kept(namespace)))

    @Endpoint(
        "POST",
        f"{NAMESPACE_PATH}/offloadPolicies",
        PolicyName.OFFLOAD,
        Takes.APPLICATION_JSON,
        body=values.BODY,
    )
    async def set(self, request: web.Request) -> web.Response:
        """Store offload policies of a namespace."""
        policies = values.checked(await json_body(request))
        await self._fail_as_upstream(request, RestError(500, NO_NAMESPACE))
        await self.keep(await self.namespace(request), policies)
        return done()

    @Endpoint(
        "DELETE",
        f"{NAMESPACE_PATH}/removeOffloadPolicies",
        PolicyName.OFFLOAD,
        Takes.APPLICATION_JSON,
    )
    async def remove(self, request: web.Request) -> web.Response:
        """Remove the offload policies of a namespace, and numbers of old names."""
        await self._fail_as_upstream(request, RestError(409, "Concurrent modification"))
        await self._set(await self.namespace(request), None)
        return done()

    async def _fail_as_upstream(self, request: web.Request, error: RestError) -> None:
        fails = self._context.rules.fails_as_upstream
        if fails and await self._context.store.policies(namespace_name(request)) is None:
            raise error

    async def keep(self, namespace: NamespaceName, policies: Mapping[str, Any]) -> None:
        """Store offload policies of a namespace, merged with numbers of old names."""
        await self._set(namespace, values.with_old(policies, self.kept(namespace)))

    async def _set(self, namespace: NamespaceName, policies: Mapping[str, Any] | None) -> None:
        old = [key for key in values.OLD if key in self.kept(namespace)]
        await self._context.message_policies.set(namespace, values.POLICIES, policies)
        for key in old:
            await self._context.message_policies.set(namespace, key, None)

    # -- of topics ----------------------------------------------------------------------------

    @Endpoint("GET", f"{TOPIC_PATH}/offloadPolicies", PolicyName.OFFLOAD, query=("applied",))
    async def get_of_topic(self, request: web.Request) -> web.Response:
        """Return the offload policies of a topic, or the effective policies."""
        topic = await topic_with_policies(self._context, request)
        policies = self.kept(topic).get(values.POLICIES)
        if flag(request, "applied"):
            policies = values.merged(policies, self.kept(topic.namespace))
        return _shown(policies)

    @Endpoint(
        "POST", f"{TOPIC_PATH}/offloadPolicies", PolicyName.OFFLOAD, Takes.JSON, body=values.BODY
    )
    async def set_of_topic(self, request: web.Request) -> web.Response:
        """Store offload policies of a topic."""
        body = await json_body(request)
        values.offload_of(body)
        topic = await topic_with_policies(self._context, request)
        await self._context.message_policies.set(topic, values.POLICIES, values.checked(body))
        return done()

    @Endpoint("DELETE", f"{TOPIC_PATH}/offloadPolicies", PolicyName.OFFLOAD)
    async def remove_of_topic(self, request: web.Request) -> web.Response:
        """Restore the namespace's offload policies for a topic."""
        topic = await topic_with_policies(self._context, request)
        await self._context.message_policies.set(topic, values.POLICIES, None)
        return done()


def _shown(policies: Mapping[str, Any] | None) -> web.Response:
    return shown(None if policies is None else values.shown(policies), Empty.NO_BODY)


class _Number:
    """The requests about a number of a namespace's offload policies."""

    def __init__(self, admin: OffloadAdmin, old: str, unset: object, status: int) -> None:
        self._admin = admin
        self._old, self._name = old, values.OLD[old]
        self._unset = unset
        self._status = status

    async def get(self, request: web.Request) -> web.Response:
        """Return the number."""
        document = self._admin.kept(await self._admin.namespace(request))
        policies = values.of_namespace(document)
        number = (policies or {}).get(self._name)
        if number is None and (policies is None or self._unset is not Empty.NO_BODY):
            number = document.get(self._old)
        return shown(number, self._unset)

    async def set(self, request: web.Request) -> web.Response:
        """Store the number in the offload policies."""
        await self._keep(request, long_number(await given_body(request)))
        return done(self._status)

    async def remove(self, request: web.Request) -> web.Response:
        """Remove the number; a number of the old name becomes visible."""
        await self._keep(request, None)
        return done()

    async def _keep(self, request: web.Request, number: int | None) -> None:
        namespace = await self._admin.namespace(request)
        policies = {**(values.of_namespace(self._admin.kept(namespace)) or {}), self._name: number}
        kept = {name: one for name, one in policies.items() if one is not None}
        await self._admin.keep(namespace, kept)

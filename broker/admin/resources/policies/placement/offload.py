"""Offload policies of namespaces and topics: stored and shown; nothing is offloaded.

Source: upstream NamespacesBase, PersistentTopicsBase; recorded answers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.admin.bodies import given_body, json_body
from broker.admin.paths import endpoint, given
from broker.admin.requests import flag, namespace_name
from broker.admin.resources.policies.placement import offload_values as values
from broker.admin.resources.policies.subjects import PolicyResource
from broker.authorization.operations import PolicyName
from broker.policies.policy import NO_NAMESPACE
from broker.policies.values import long_number, schema_of
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aiohttp import web

    from broker.admin.paths import Endpoint
    from broker.policies.service import Change
    from proto.names import NamespaceName


class _Number(NamedTuple):
    """A number in a namespace's offload policies that has its own REST path.

    Attributes:
        path: The last segment of the REST path.
        old: The key under which older versions store the number, outside the offload policies.
        unset: The response if the number is not set. Only a number with an empty response (None)
            can be removed.
        status: The HTTP status of a response after setting the number.
    """

    path: str
    old: str
    unset: int | None = -1
    status: int = 204


_NUMBERS = (
    _Number("offloadThreshold", "offload_threshold"),
    _Number("offloadThresholdInSeconds", "offload_threshold_in_seconds", status=200),
    _Number("offloadDeletionLagMs", "offload_deletion_lag_ms", None),
)


class OffloadAdmin(PolicyResource):
    """Handlers of admin requests about offload policies."""

    def endpoints(self) -> Iterator[Endpoint]:
        """Yield the endpoints declared here, then the endpoints of single numbers."""
        yield from super().endpoints()
        needs = PolicyName.OFFLOAD
        for one in _NUMBERS:
            path = f"namespaces/{{namespace}}/{one.path}"
            yield endpoint(f"GET {path}", needs, handler=given(self.get_number, one))
            body, set_one = schema_of(long_number), given(self.set_number, one)
            yield endpoint(f"PUT {path}", needs, body=body, done=(one.status,), handler=set_one)
            if one.unset is None:
                yield endpoint(f"DELETE {path}", needs, handler=given(self.remove_number, one))

    # -- of namespaces ------------------------------------------------------------------------

    @endpoint("GET namespaces/{namespace}/offloadPolicies", PolicyName.OFFLOAD)
    async def get(self, request: web.Request) -> object:
        """Return the offload policies of a namespace."""
        return _shown(values.of_namespace(self._kept(await self._namespace(request))))

    @endpoint("POST namespaces/{namespace}/offloadPolicies", PolicyName.OFFLOAD, body=values.BODY)
    async def set(self, request: web.Request) -> None:
        """Store the offload policies of a namespace."""
        policies = values.checked(await json_body(request))
        await self._fail_as_upstream(request, RestError(500, NO_NAMESPACE))
        await self._replace(await self._namespace(request), partial(values.with_old, policies))

    @endpoint("DELETE namespaces/{namespace}/removeOffloadPolicies", PolicyName.OFFLOAD)
    async def remove(self, request: web.Request) -> None:
        """Remove a namespace's offload policies, and numbers stored under their old names."""
        await self._fail_as_upstream(request, RestError(409, "Concurrent modification"))
        await self._replace(await self._namespace(request), lambda _: None)

    async def _fail_as_upstream(self, request: web.Request, error: RestError) -> None:
        fails = self._context.rules.fails_as_upstream
        if fails and await self._context.store.policies(namespace_name(request)) is None:
            raise error

    async def _replace(self, namespace: NamespaceName, changed: Change) -> None:
        """Replace a namespace's offload policies, and remove numbers stored under old names."""
        before = await self._change(namespace, values.POLICIES, changed)
        for key in values.OLD:
            if key in before:
                await self._keep(namespace, key, None)

    # -- a number -----------------------------------------------------------------------------

    async def get_number(self, one: _Number, request: web.Request) -> object:
        """Return a single number of a namespace's offload policies."""
        document = self._kept(await self._namespace(request))
        policies = values.of_namespace(document)
        number = (policies or {}).get(values.OLD[one.old])
        if number is None and (policies is None or one.unset is not None):
            number = document.get(one.old)
        return one.unset if number is None else number

    async def set_number(self, one: _Number, request: web.Request) -> None:
        """Store a single number in a namespace's offload policies."""
        await self._keep_number(one, request, long_number(await given_body(request)))

    async def remove_number(self, one: _Number, request: web.Request) -> None:
        """Remove a single number from a namespace's offload policies.

        A number stored under the old name becomes visible.
        """
        await self._keep_number(one, request, None)

    async def _keep_number(self, one: _Number, request: web.Request, number: int | None) -> None:
        namespace = await self._namespace(request)

        def with_number(document: Mapping[str, Any]) -> object:
            policies = {**(values.of_namespace(document) or {}), values.OLD[one.old]: number}
            kept = {name: value for name, value in policies.items() if value is not None}
            return values.with_old(kept, document)

        await self._replace(namespace, with_number)

    # -- of topics ----------------------------------------------------------------------------

    @endpoint("GET {topic}/offloadPolicies?applied&isGlobal", PolicyName.OFFLOAD)
    async def get_of_topic(self, request: web.Request) -> object:
        """Return a topic's offload policies; with ``applied``, the effective policies."""
        topic = await self._topic(request)
        policies = self._kept(topic, globally=flag(request, "isGlobal")).get(values.POLICIES)
        if flag(request, "applied"):
            policies = values.merged(policies, self._kept(topic.namespace))
        return _shown(policies)

    @endpoint("POST {topic}/offloadPolicies?isGlobal", PolicyName.OFFLOAD, body=values.BODY)
    async def set_of_topic(self, request: web.Request) -> None:
        """Store the offload policies of a topic."""
        body = await json_body(request)
        values.offload_of(body)
        topic, globally = await self._topic(request), flag(request, "isGlobal")
        await self._keep(topic, values.POLICIES, values.checked(body), globally=globally)

    @endpoint("DELETE {topic}/offloadPolicies?isGlobal", PolicyName.OFFLOAD)
    async def remove_of_topic(self, request: web.Request) -> None:
        """Remove a topic's offload policies, so that its namespace's apply again."""
        topic, globally = await self._topic(request), flag(request, "isGlobal")
        await self._keep(topic, values.POLICIES, None, globally=globally)


def _shown(policies: Mapping[str, Any] | None) -> object:
    return None if policies is None else values.shown(policies)

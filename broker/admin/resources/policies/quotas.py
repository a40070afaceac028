"""Backlog quotas of namespaces and topics, by size and by age."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.admin.bodies import BadBodyError, json_body, without_null
from broker.admin.openapi import schemas
from broker.admin.paths import Endpoint, Takes
from broker.admin.requests import done, flag
from broker.admin.resources.policies.checks import exceeds_retention
from broker.admin.resources.policies.subjects import (
    NAMESPACE_PATH,
    TOPIC_PATH,
    existing_namespace,
    topic_with_policies,
)
from broker.admin.resources.policies.values import (
    Field,
    long_number,
    number,
    object_by_name,
    object_of,
    one_of,
)
from broker.authorization.operations import PolicyName
from broker.policies.documents import AGE_QUOTA, SIZE_QUOTA
from broker.policies.effective import QuotaAction
from server.cross_site import check_change
from server.http import RestError, json_response
from server.seeing.audit import tell_change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

    from broker.admin.context import AdminContext
    from broker.policies.effective import BacklogQuota, EffectivePolicies
    from proto.names import NamespaceName, TopicName

_KEY = "backlog_quota_map"
_TYPES = (SIZE_QUOTA, AGE_QUOTA)
_READ = object_of(
    Field("limit", long_number),
    Field("limitSize", long_number),
    Field("limitTime", number, 0),
    Field("policy", one_of([action.value for action in QuotaAction])),
)


class QuotaAdmin:
    """Requests about backlog quotas."""

    def __init__(self, context: AdminContext) -> None:
        self._context = context

    def _quotas(self, of: NamespaceName | TopicName) -> Mapping[str, Any]:
        return dict(self._context.message_policies.document(of).get(_KEY, {}))

    async def _keep(
        self, of: NamespaceName | TopicName, kind: str, quota: Mapping[str, Any] | None
    ) -> None:
        others = {name: one for name, one in self._quotas(of).items() if name != kind}
        quotas = others if quota is None else {**others, kind: quota}
        in_order = {name: quotas[name] for name in _TYPES if name in quotas}
        await self._context.message_policies.set(of, _KEY, in_order or None)

    def _check(self, of: NamespaceName | TopicName, quota: Mapping[str, Any]) -> None:
        kept = self._context.message_policies.document(of).get("retention_policies", {})
        if exceeds_retention(quota, kept):
            raise RestError(
                412,
                "Backlog Quota exceeds configured retention quota for namespace. "
                "Please increase retention quota and retry",
            )

    # -- of namespaces ------------------------------------------------------------------------

    @Endpoint(
        "GET", f"{NAMESPACE_PATH}/backlogQuotaMap", PolicyName.BACKLOG, Takes.APPLICATION_JSON
    )
    async def get_of_namespace(self, request: web.Request) -> web.Response:
        """Return the quotas of a namespace by type."""
        return json_response(self._quotas(await existing_namespace(self._context, request)))

    @Endpoint(
        "POST",
        f"{NAMESPACE_PATH}/backlogQuota",
        PolicyName.BACKLOG,
        Takes.APPLICATION_JSON,
        body=schemas.QUOTA,
        query=("backlogQuotaType",),
    )
    async def set_of_namespace(self, request: web.Request) -> web.Response:
        """Set a quota of a namespace."""
        kind, body = _kind(request), await json_body(request)
        if body is None:
            raise BadBodyError("the body should be a backlog quota", upstream_status=500)
        given = _READ(body)
        namespace = await existing_namespace(self._context, request)
        quota = _quota(given, namespace)
        self._check(namespace, quota)
        await self._keep(namespace, kind, quota)
        return done()

    @Endpoint(
        "DELETE",
        f"{NAMESPACE_PATH}/backlogQuota",
        PolicyName.BACKLOG,
        Takes.APPLICATION_JSON,
        query=("backlogQuotaType",),
    )
    async def remove_of_namespace(self, request: web.Request) -> web.Response:
        """Remove a quota of a namespace."""
        kind = _kind(request)
        namespace = await existing_namespace(self._context, request)
        await self._keep(namespace, kind, None)
        return done()

    # -- of topics ----------------------------------------------------------------------------

    @Endpoint("GET", f"{TOPIC_PATH}/backlogQuotaMap", PolicyName.BACKLOG, query=("applied",))
    async def get_of_topic(self, request: web.Request) -> web.Response:
        """Return the quotas of a topic by type, or the effective quotas."""
        topic = await topic_with_policies(self._context, request)
        quotas = self._quotas(topic)
        if not quotas and flag(request, "applied"):
            quotas = self._quotas(topic.namespace)
            if not quotas:
                quotas = _defaults(self._context.message_policies.defaults)
                if self._context.rules.keeps_shown_quotas:
                    check_change(request)
                    await self._context.message_policies.set(topic.namespace, _KEY, quotas)
                    tell_change(request)
        return json_response(quotas)

    @Endpoint(
        "POST",
        f"{TOPIC_PATH}/backlogQuota",
        PolicyName.BACKLOG,
        Takes.JSON,
        body=schemas.QUOTA,
        query=("backlogQuotaType",),
    )
    async def set_of_topic(self, request: web.Request) -> web.Response:
        """Set a quota of a topic; without a body remove the quota."""
        kind, body = _kind(request), await json_body(request)
        given = None if body is None else _READ(body)
        topic = await topic_with_policies(self._context, request)
        quota = None if given is None else _quota(given, topic.namespace)
        if quota is not None:
            self._check(topic, quota)
        await self._keep(topic, kind, quota)
        return done()

    @Endpoint(
        "DELETE", f"{TOPIC_PATH}/backlogQuota", PolicyName.BACKLOG, query=("backlogQuotaType",)
    )
    async def remove_of_topic(self, request: web.Request) -> web.Response:
        """Remove a quota of a topic."""
        kind, topic = _kind(request), await topic_with_policies(self._context, request)
        await self._keep(topic, kind, None)
        return done()


def quotas_of(value: object, namespace: NamespaceName) -> dict[str, Mapping[str, Any]]:
    """Return a new namespace's quotas by type."""
    given = without_null(object_by_name(value))
    if not given.keys() <= set(_TYPES):
        raise BadBodyError(f"the body should have quotas of: {', '.join(_TYPES)}")
    return {kind: _quota(_READ(quota), namespace) for kind, quota in given.items()}


def _kind(request: web.Request) -> str:
    kind = request.query.get("backlogQuotaType", SIZE_QUOTA)
    if kind not in _TYPES:
        expected = ", ".join(_TYPES)
        raise RestError(404, f"backlogQuotaType={kind[:40]!r} should be one of: {expected}")
    return kind


def _quota(given: Mapping[str, Any], namespace: NamespaceName) -> Mapping[str, Any]:
    if "policy" not in given:
        raise RestError(
            400,
            f"Set namespace[{namespace}] backlog quota failed because the data validation failed. "
            "the attribute policy cannot be null",
        )
    size = given.get("limitSize", given.get("limit", 0))
    return {
        "limit": size,
        "limitSize": size,
        "limitTime": given["limitTime"],
        "policy": given["policy"],
    }


def _defaults(own: EffectivePolicies) -> Mapping[str, Any]:
    return {
        SIZE_QUOTA: _body(own.size_quota, own.size_quota.limit, -1),
        AGE_QUOTA: _body(own.age_quota, -1, own.age_quota.limit),
    }


def _body(quota: BacklogQuota, size: int, seconds: int) -> Mapping[str, object]:
    return {
        "limit": size,
        "limitSize": size,
        "limitTime": seconds,
        "policy": quota.action.value,
    }

"""Admin requests about backlog quotas, by size and by age, of namespaces and topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.admin.bodies import json_body
from broker.admin.openapi import schemas
from broker.admin.paths import endpoint
from broker.admin.requests import flag
from broker.admin.resources.policies.checks import exceeds_retention
from broker.admin.resources.policies.subjects import PolicyResource
from broker.authorization.operations import PolicyName
from broker.policies.documents import AGE_QUOTA, SIZE_QUOTA
from broker.policies.effective import QuotaAction
from broker.policies.values import (
    BadBodyError,
    Member,
    long_number,
    number,
    object_by_name,
    object_of,
    one_of,
    without_null,
)
from proto.names import NamespaceName
from server.cross_site import check_change
from server.http import RestError
from server.seeing.audit import tell_change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

    from broker.policies.effective import EffectivePolicies
    from proto.names import TopicName

_KEY = "backlog_quota_map"
_TYPES = (SIZE_QUOTA, AGE_QUOTA)
_READ = object_of(
    Member("limit", long_number),
    Member("limitSize", long_number),
    Member("limitTime", number, 0),
    Member("policy", one_of([action.value for action in QuotaAction])),
)


class QuotaAdmin(PolicyResource):
    """Handlers of admin requests about backlog quotas."""

    def _quotas(self, of: NamespaceName | TopicName) -> Mapping[str, Any]:
        return _quotas(self._kept(of))

    async def _keep_one(
        self, of: NamespaceName | TopicName, kind: str, quota: Mapping[str, Any] | None
    ) -> None:
        def with_one(document: Mapping[str, Any]) -> object:
            quotas = {**_quotas(document), kind: quota}
            in_order = {name: quotas[name] for name in _TYPES if quotas.get(name) is not None}
            return in_order or None

        await self._change(of, _KEY, with_one)

    @endpoint("GET namespaces/{namespace}/backlogQuotaMap", PolicyName.BACKLOG)
    async def get_of_namespace(self, request: web.Request) -> object:
        """Return the backlog quotas of a namespace, by type."""
        return self._quotas(await self._namespace(request))

    @endpoint("GET {topic}/backlogQuotaMap?applied", PolicyName.BACKLOG)
    async def get_of_topic(self, request: web.Request) -> object:
        """Return a topic's backlog quotas by type; with ``applied``, the effective quotas."""
        topic = await self._topic(request)
        quotas = self._quotas(topic)
        if not quotas and flag(request, "applied"):
            quotas = self._quotas(topic.namespace)
            if not quotas:
                quotas = _defaults(self._context.message_policies.defaults)
                if self._context.rules.keeps_shown_quotas:
                    check_change(request)
                    await self._change(
                        topic.namespace, _KEY, lambda document: _quotas(document) or quotas
                    )
                    tell_change(request)
        return quotas

    @endpoint(
        "POST namespaces/{namespace}/backlogQuota?backlogQuotaType",
        PolicyName.BACKLOG,
        body=schemas.QUOTA,
    )
    @endpoint("POST {topic}/backlogQuota?backlogQuotaType", PolicyName.BACKLOG, body=schemas.QUOTA)
    async def set(self, request: web.Request) -> None:
        """Set a backlog quota; for a topic, an empty body removes the quota."""
        kind, body = _kind(request), await json_body(request)
        if body is None and "topic" not in request.match_info:
            raise BadBodyError("the body should be a backlog quota", upstream_status=500)
        given = None if body is None else _READ(body)
        subject = await self._subject(request)
        quota = None if given is None else _quota(given, subject)
        if quota is not None and exceeds_retention(
            quota, self._kept(subject).get("retention_policies", {})
        ):
            raise RestError(
                412,
                "Backlog Quota exceeds configured retention quota for namespace. "
                "Please increase retention quota and retry",
            )
        await self._keep_one(subject, kind, quota)

    @endpoint("DELETE namespaces/{namespace}/backlogQuota?backlogQuotaType", PolicyName.BACKLOG)
    @endpoint("DELETE {topic}/backlogQuota?backlogQuotaType", PolicyName.BACKLOG)
    async def remove(self, request: web.Request) -> None:
        """Remove a backlog quota."""
        kind = _kind(request)
        await self._keep_one(await self._subject(request), kind, None)


def _quotas(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return document.get(_KEY) or {}


def quotas_of(value: object, namespace: NamespaceName) -> dict[str, Mapping[str, Any]]:
    """Parse a new namespace's backlog quotas, by type (size or age)."""
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


def _quota(given: Mapping[str, Any], of: NamespaceName | TopicName) -> Mapping[str, Any]:
    if "policy" not in given:
        namespace = of if isinstance(of, NamespaceName) else of.namespace
        raise RestError(
            400,
            f"Set namespace[{namespace}] backlog quota failed because the data validation failed. "
            "the attribute policy cannot be null",
        )
    size = given.get("limitSize", given.get("limit", 0))
    return _body(size, given["limitTime"], given["policy"])


def _defaults(own: EffectivePolicies) -> Mapping[str, Any]:
    size, age = own.size_quota, own.age_quota
    return {
        SIZE_QUOTA: _body(size.limit, -1, size.action.value),
        AGE_QUOTA: _body(-1, age.limit, age.action.value),
    }


def _body(size: int, seconds: int, policy: str) -> Mapping[str, object]:
    return {"limit": size, "limitSize": size, "limitTime": seconds, "policy": policy}

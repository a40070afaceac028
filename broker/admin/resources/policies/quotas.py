"""Admin requests about backlog quotas, by size and by age, of namespaces and topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.admin.bodies import json_body
from broker.admin.openapi import schemas
from broker.admin.paths import endpoint
from broker.admin.requests import flag, namespace_name
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
    from collections.abc import Mapping, Sequence

    from aiohttp import web

    from broker.policies.service import PolicyService
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

    async def _keep_one(
        self,
        of: NamespaceName | TopicName,
        kind: str,
        quota: Mapping[str, Any] | None,
        *,
        globally: bool = False,
    ) -> None:
        def with_one(document: Mapping[str, Any]) -> object:
            quotas = {**_quotas(document), kind: quota}
            in_order = {name: quotas[name] for name in _TYPES if quotas.get(name) is not None}
            return in_order or None

        await self._change(of, _KEY, with_one, globally=globally)

    @endpoint("GET namespaces/{namespace}/backlogQuotaMap", PolicyName.BACKLOG)
    async def get_of_namespace(self, request: web.Request) -> object:
        """Return the backlog quotas of a namespace, by type."""
        return _quotas(self._kept(await self._namespace(request)))

    @endpoint("GET {topic}/backlogQuotaMap?applied&isGlobal", PolicyName.BACKLOG)
    async def get_of_topic(self, request: web.Request) -> object:
        """Return a topic's backlog quotas by type; with ``applied``, the effective quotas."""
        topic = await self._topic(request)
        quotas = _quotas(self._kept(topic, globally=flag(request, "isGlobal")))
        if not quotas and flag(request, "applied"):
            quotas = _quotas(self._kept(topic.namespace))
            if not quotas:
                quotas = dict.fromkeys(_TYPES, _default(self._context.message_policies))
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
    async def set(self, request: web.Request) -> None:
        """Set a backlog quota of a namespace."""
        kind, body = _kind(request), await json_body(request)
        if body is None:
            raise BadBodyError("the body should be a backlog quota", upstream_status=500)
        quota = _quota(_READ(body), namespace_name(request))
        namespace = await self._namespace(request, missing="")
        compared = quota if kind == SIZE_QUOTA else _default(self._context.message_policies)
        _check_below(compared, self._kept(namespace), "namespace")
        await self._keep_one(namespace, kind, quota)

    @endpoint(
        "POST {topic}/backlogQuota?backlogQuotaType&isGlobal",
        PolicyName.BACKLOG,
        body=schemas.QUOTA,
    )
    async def set_of_topic(self, request: web.Request) -> None:
        """Set a backlog quota of a topic; an empty body removes the quota."""
        kind, body, globally = _kind(request), await json_body(request), flag(request, "isGlobal")
        given = None if body is None else _READ(body)
        topic = await self._topic(request)
        quota = None if given is None else _quota(given, topic)
        own = self._kept(topic, globally=globally)
        compared = quota or _default(self._context.message_policies)
        _check_below(compared, {**self._kept(topic.namespace), **own}, "topic")
        await self._keep_one(topic, kind, quota, globally=globally)

    @endpoint("DELETE namespaces/{namespace}/backlogQuota?backlogQuotaType", PolicyName.BACKLOG)
    async def remove(self, request: web.Request) -> None:
        """Remove a backlog quota of a namespace."""
        kind = _kind(request)
        await self._keep_one(await self._namespace(request, missing=""), kind, None)

    @endpoint("DELETE {topic}/backlogQuota?backlogQuotaType&isGlobal", PolicyName.BACKLOG)
    async def remove_of_topic(self, request: web.Request) -> None:
        """Remove a backlog quota of a topic."""
        kind, globally = _kind(request), flag(request, "isGlobal")
        await self._keep_one(await self._topic(request), kind, None, globally=globally)


def _check_below(quota: Mapping[str, Any], document: Mapping[str, Any], subject: str) -> None:
    """Refuse a backlog quota that is not below the retention of a subject with these policies."""
    if exceeds_retention(quota, document.get("retention_policies", {})):
        raise RestError(
            412,
            f"Backlog Quota exceeds configured retention quota for {subject}. "
            "Please increase retention quota and retry",
        )


def _quotas(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return document.get(_KEY) or {}


def compared_quotas(
    policies: PolicyService, of: NamespaceName | TopicName, own: Mapping[str, Any]
) -> Sequence[Mapping[str, Any]]:
    """Return the backlog quotas that the retention of a namespace or topic must exceed.

    Args:
        policies: All policies.
        of: The namespace or topic.
        own: Its policies in the scope of the request.
    """
    quotas, default = _quotas(own), _default(policies)
    if isinstance(of, NamespaceName):
        return [quotas.get(SIZE_QUOTA, default)] if quotas else []
    quotas = {**_quotas(policies.document(of.namespace)), **quotas}
    return [quotas.get(kind, default) for kind in _TYPES]


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


def _default(policies: PolicyService) -> Mapping[str, Any]:
    size, age = policies.defaults.size_quota, policies.defaults.age_quota
    return _body(size.limit, age.limit, size.action.value)


def _body(size: int, seconds: int, policy: str) -> Mapping[str, object]:
    return {"limit": size, "limitSize": size, "limitTime": seconds, "policy": policy}

"""Admin requests that store and show permissions, applied by ``broker.authorization``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.admin.bodies import json_body
from broker.admin.openapi import schemas
from broker.admin.paths import endpoint
from broker.admin.requests import segment
from broker.admin.resources.policies.subjects import PolicyResource
from broker.authorization.grants import (
    KEY,
    OF_NAMESPACE,
    OF_SUBSCRIPTIONS,
    OF_TOPICS,
    forget_grants,
)
from broker.authorization.operations import Action, Level, NamespaceOperation
from broker.errors import RefusedError
from broker.policies.values import (
    BadBodyError,
    check_unicode,
    object_by_name,
    set_of_texts,
    without_null,
)
from server.http import RestError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiohttp import web

    from proto.names import NamespaceName

_ACTIONS = tuple(action.value for action in Action)


class PermissionAdmin(PolicyResource):
    """Handlers of admin requests about permissions of roles."""

    def _permissions(self, namespace: NamespaceName) -> dict[str, dict[str, Any]]:
        return _permissions(self._kept(namespace))

    async def _change_one(
        self, namespace: NamespaceName, part: str, name: str, changed: Callable[[Any], object]
    ) -> None:
        """Change the permissions stored for one role, topic or subscription.

        If no permissions are left, the name of the role, topic or subscription is removed.
        """

        def with_one(document: Mapping[str, Any]) -> object:
            kept = _permissions(document)
            kept[part][name] = value = changed(kept[part].get(name))
            if not value:
                del kept[part][name]
            return kept if any(kept.values()) else None

        await self._change(namespace, KEY, with_one)

    # -- of namespaces ------------------------------------------------------------------------

    @endpoint("GET namespaces/{namespace}/permissions", NamespaceOperation.GET_PERMISSION)
    async def get_of_namespace(self, request: web.Request) -> object:
        """Return the actions that are allowed in a namespace, by role."""
        namespace = await self._namespace(request)
        return self._permissions(namespace)[OF_NAMESPACE]

    @endpoint(
        "POST namespaces/{namespace}/permissions/{role}",
        NamespaceOperation.GRANT_PERMISSION,
        body=schemas.ACTIONS,
    )
    async def grant_on_namespace(self, request: web.Request) -> None:
        """Set the actions that a role is allowed in a namespace."""
        actions = await _actions(request)
        namespace = await self._namespace(request)
        await self._change_one(namespace, OF_NAMESPACE, segment(request, "role"), lambda _: actions)

    @endpoint(
        "DELETE namespaces/{namespace}/permissions/{role}", NamespaceOperation.REVOKE_PERMISSION
    )
    async def revoke_on_namespace(self, request: web.Request) -> None:
        """Remove all permissions of a role in a namespace."""
        namespace = await self._namespace(request)
        await self._change_one(namespace, OF_NAMESPACE, segment(request, "role"), lambda _: None)

    # -- of subscriptions ---------------------------------------------------------------------

    @endpoint(
        "GET namespaces/{namespace}/permissions/subscription", NamespaceOperation.GET_PERMISSION
    )
    async def get_of_subscriptions(self, request: web.Request) -> object:
        """Return the roles that alone may use subscriptions, by subscription name."""
        namespace = await self._namespace(request)
        return self._permissions(namespace)[OF_SUBSCRIPTIONS]

    @endpoint(
        "POST namespaces/{namespace}/permissions/subscription/{subscription}",
        NamespaceOperation.GRANT_PERMISSION,
        body=schemas.TEXTS,
    )
    async def grant_on_one(self, request: web.Request) -> None:
        """Set the roles that alone may use subscriptions with this name."""
        roles = set_of_texts(await json_body(request)) or []
        namespace = await self._namespace(request)
        name = segment(request, "subscription")
        await self._change_one(namespace, OF_SUBSCRIPTIONS, name, lambda _: roles)

    @endpoint(
        "DELETE namespaces/{namespace}/permissions/{subscription}/{role}",
        NamespaceOperation.REVOKE_PERMISSION,
    )
    async def revoke_on_one(self, request: web.Request) -> None:
        """Remove a role from the roles that may use subscriptions with this name."""
        namespace = await self._namespace(request)
        name, role = segment(request, "subscription"), segment(request, "role")

        def left(roles: list[str] | None) -> list[str]:
            return [one for one in roles or () if one != role]

        await self._change_one(namespace, OF_SUBSCRIPTIONS, name, left)

    # -- of topics ----------------------------------------------------------------------------

    @endpoint("GET {topic}/permissions", Level.TENANT_ADMIN)
    async def get_of_topic(self, request: web.Request) -> object:
        """Return the actions allowed on a topic, or in its whole namespace, by role."""
        topic = await self._existing_topic(request)
        kept = self._permissions(topic.namespace)
        return kept[OF_NAMESPACE] | kept[OF_TOPICS].get(str(topic), {})

    @endpoint("POST {topic}/permissions/{role}", Level.TENANT_ADMIN, body=schemas.ACTIONS)
    async def grant_on_topic(self, request: web.Request) -> None:
        """Set the actions that a role is allowed on a topic."""
        await self._change_topic(request, await _actions(request))

    @endpoint("DELETE {topic}/permissions/{role}", Level.TENANT_ADMIN)
    async def revoke_on_topic(self, request: web.Request) -> None:
        """Remove all permissions of a role on a topic."""
        await self._change_topic(request, None)

    async def _change_topic(self, request: web.Request, actions: list[str | None] | None) -> None:
        topic = await self._existing_topic(request)
        changed = {segment(request, "role"): actions}

        def allowed(roles: Mapping[str, Any] | None) -> object:
            together = {**(roles or {}), **changed}
            return {role: one for role, one in together.items() if one is not None}

        await self._change_one(topic.namespace, OF_TOPICS, str(topic), allowed)
        try:
            await self._check_there(topic)
        except RefusedError:
            await forget_grants(self._context.message_policies, topic)
            raise


def _permissions(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    kept = document.get(KEY, {})
    return {part: dict(kept.get(part, {})) for part in no_permissions()}


def no_permissions() -> dict[str, dict[str, object]]:
    """Return the stored form of a namespace's permissions, without any permission."""
    return {OF_NAMESPACE: {}, OF_TOPICS: {}, OF_SUBSCRIPTIONS: {}}


def permissions_of(value: object) -> dict[str, dict[str, Any]] | None:
    """Parse a new namespace's permissions from a request's body; return None if there are none."""
    given = {part: _present(_present(value).get(part)) for part in no_permissions()}
    found: dict[str, dict[str, Any]] = {
        OF_NAMESPACE: _by_role(given[OF_NAMESPACE]),
        OF_TOPICS: {topic: _by_role(_present(one)) for topic, one in given[OF_TOPICS].items()},
        OF_SUBSCRIPTIONS: {
            name: set_of_texts(roles) for name, roles in given[OF_SUBSCRIPTIONS].items()
        },
    }
    return found if any(found.values()) else None


def _present(value: object) -> dict[str, object]:
    found = without_null(object_by_name(value))
    check_unicode(found)
    return found


def _by_role(roles: Mapping[str, object]) -> dict[str, list[str | None]]:
    return {role: _actions_of(actions) for role, actions in roles.items()}


async def _actions(request: web.Request) -> list[str | None]:
    """Return the actions in a request's body, with None for unknown actions, as upstream."""
    value = await json_body(request)
    if value is None:
        raise RestError(400, "Actions should not be null")
    return _actions_of(value)


def _actions_of(value: object) -> list[str | None]:
    if not isinstance(value, list):
        raise BadBodyError("the body should be an array of actions")
    found = [one if one in _ACTIONS else None for one in value]
    return list(dict.fromkeys(found))

"""Permissions of roles: stored and shown; ``broker.authorization`` applies them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.admin.bodies import BadBodyError, check_unicode, json_body, without_null
from broker.admin.openapi import schemas
from broker.admin.paths import Endpoint, Takes
from broker.admin.requests import done, segment
from broker.admin.resources.policies.subjects import (
    NAMESPACE_PATH,
    TOPIC_PATH,
    existing_namespace,
    existing_topic,
)
from broker.admin.resources.policies.values import object_by_name, set_of_texts
from broker.authorization.grants import KEY, OF_NAMESPACE, OF_SUBSCRIPTIONS, OF_TOPICS
from broker.authorization.operations import Action, Level, NamespaceOperation
from server.http import RestError, json_response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

    from broker.admin.context import AdminContext
    from proto.names import NamespaceName

_ACTIONS = tuple(action.value for action in Action)


class PermissionAdmin:
    """Requests about permissions."""

    def __init__(self, context: AdminContext) -> None:
        self._context = context

    def _permissions(self, namespace: NamespaceName) -> dict[str, dict[str, Any]]:
        kept = self._context.message_policies.document(namespace).get(KEY, {})
        return {part: dict(kept.get(part, {})) for part in no_permissions()}

    async def _keep(self, namespace: NamespaceName, part: str, name: str, value: object) -> None:
        """Replace the permissions of a name; remove the name if empty."""
        kept = self._permissions(namespace)
        kept[part][name] = value
        if not value:
            del kept[part][name]
        anything = any(kept.values())
        await self._context.message_policies.set(namespace, KEY, kept if anything else None)

    # -- of namespaces ------------------------------------------------------------------------

    @Endpoint(
        "GET",
        f"{NAMESPACE_PATH}/permissions",
        NamespaceOperation.GET_PERMISSION,
        Takes.APPLICATION_JSON,
    )
    async def get_of_namespace(self, request: web.Request) -> web.Response:
        """Return the allowed actions in a namespace, by role."""
        namespace = await existing_namespace(self._context, request)
        return json_response(self._permissions(namespace)[OF_NAMESPACE])

    @Endpoint(
        "POST",
        f"{NAMESPACE_PATH}/permissions/{{role}}",
        NamespaceOperation.GRANT_PERMISSION,
        Takes.APPLICATION_JSON,
        body=schemas.ACTIONS,
    )
    async def grant_on_namespace(self, request: web.Request) -> web.Response:
        """Set the allowed actions of a role in a namespace."""
        actions = await _actions(request)
        namespace = await existing_namespace(self._context, request)
        await self._keep(namespace, OF_NAMESPACE, segment(request, "role"), actions)
        return done()

    @Endpoint(
        "DELETE",
        f"{NAMESPACE_PATH}/permissions/{{role}}",
        NamespaceOperation.REVOKE_PERMISSION,
        Takes.APPLICATION_JSON,
    )
    async def revoke_on_namespace(self, request: web.Request) -> web.Response:
        """Remove all permissions of a role in a namespace."""
        namespace = await existing_namespace(self._context, request)
        await self._keep(namespace, OF_NAMESPACE, segment(request, "role"), None)
        return done()

    # -- of subscriptions ---------------------------------------------------------------------

    @Endpoint(
        "GET",
        f"{NAMESPACE_PATH}/permissions/subscription",
        NamespaceOperation.GET_PERMISSION,
        Takes.APPLICATION_JSON,
    )
    async def get_of_subscriptions(self, request: web.Request) -> web.Response:
        """Return the roles that may use subscriptions, by name of the subscription."""
        namespace = await existing_namespace(self._context, request)
        return json_response(self._permissions(namespace)[OF_SUBSCRIPTIONS])

    @Endpoint(
        "POST",
        f"{NAMESPACE_PATH}/permissions/subscription/{{subscription}}",
        NamespaceOperation.GRANT_PERMISSION,
        Takes.APPLICATION_JSON,
        body=schemas.TEXTS,
    )
    async def grant_on_one(self, request: web.Request) -> web.Response:
        """Allow roles to use subscriptions of a name."""
        roles = set_of_texts(await json_body(request)) or []
        namespace = await existing_namespace(self._context, request)
        await self._keep(namespace, OF_SUBSCRIPTIONS, segment(request, "subscription"), roles)
        return done()

    @Endpoint(
        "DELETE",
        f"{NAMESPACE_PATH}/permissions/{{subscription}}/{{role}}",
        NamespaceOperation.REVOKE_PERMISSION,
        Takes.APPLICATION_JSON,
    )
    async def revoke_on_one(self, request: web.Request) -> web.Response:
        """Remove a role's permission to use subscriptions of a name."""
        namespace = await existing_namespace(self._context, request)
        name, role = segment(request, "subscription"), segment(request, "role")
        roles = self._permissions(namespace)[OF_SUBSCRIPTIONS].get(name, [])
        left = [one for one in roles if one != role]
        await self._keep(namespace, OF_SUBSCRIPTIONS, name, left)
        return done()

    # -- of topics ----------------------------------------------------------------------------

    @Endpoint("GET", f"{TOPIC_PATH}/permissions", Level.TENANT_ADMIN)
    async def get_of_topic(self, request: web.Request) -> web.Response:
        """Return the allowed actions on a topic or in its namespace, by role."""
        topic = await existing_topic(self._context, request)
        kept = self._permissions(topic.namespace)
        return json_response(kept[OF_NAMESPACE] | kept[OF_TOPICS].get(str(topic), {}))

    @Endpoint(
        "POST",
        f"{TOPIC_PATH}/permissions/{{role}}",
        Level.TENANT_ADMIN,
        Takes.JSON,
        body=schemas.ACTIONS,
    )
    async def grant_on_topic(self, request: web.Request) -> web.Response:
        """Set the allowed actions of a role on a topic."""
        return await self._change_topic(request, await _actions(request))

    @Endpoint("DELETE", f"{TOPIC_PATH}/permissions/{{role}}", Level.TENANT_ADMIN)
    async def revoke_on_topic(self, request: web.Request) -> web.Response:
        """Remove all permissions of a role on a topic."""
        return await self._change_topic(request, None)

    async def _change_topic(
        self, request: web.Request, actions: list[str | None] | None
    ) -> web.Response:
        topic = await existing_topic(self._context, request)
        roles = dict(self._permissions(topic.namespace)[OF_TOPICS].get(str(topic), {}))
        roles[segment(request, "role")] = actions
        allowed = {role: one for role, one in roles.items() if one is not None}
        await self._keep(topic.namespace, OF_TOPICS, str(topic), allowed)
        return done()


def no_permissions() -> dict[str, dict[str, object]]:
    """Return empty permissions of a namespace."""
    return {OF_NAMESPACE: {}, OF_TOPICS: {}, OF_SUBSCRIPTIONS: {}}


def permissions_of(value: object) -> dict[str, dict[str, Any]] | None:
    """Return a new namespace's permissions from its body; None if empty."""
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
    """Return the actions in the body; as upstream, an unknown action is a null."""
    value = await json_body(request)
    if value is None:
        raise RestError(400, "Actions should not be null")
    return _actions_of(value)


def _actions_of(value: object) -> list[str | None]:
    if not isinstance(value, list):
        raise BadBodyError("the body should be an array of actions")
    found = [one if one in _ACTIONS else None for one in value]
    return list(dict.fromkeys(found))

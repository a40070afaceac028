"""All routes of the admin, those with literal paths before those with names in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.brokers import BrokerAdmin
from broker.admin.namespaces import NamespaceAdmin
from broker.admin.not_built import NotBuiltAdmin
from broker.admin.tenants import TenantAdmin
from broker.admin.topic_lookup import LookupAdmin
from broker.admin.topics import TopicAdmin

if TYPE_CHECKING:
    from aiohttp import web

    from broker.admin.admin_parts import AdminParts


def admin_routes(parts: AdminParts) -> list[web.RouteDef]:
    """Return the routes of one broker."""
    namespaces, topics = NamespaceAdmin(parts), TopicAdmin(parts)
    return [
        *BrokerAdmin(parts).routes(),
        *TenantAdmin(parts, namespaces).routes(),
        *namespaces.routes(),
        *topics.routes(),
        *LookupAdmin(parts).routes(),
        *NotBuiltAdmin(parts, topics).routes(),
    ]

"""All routes of the admin, those with literal paths before those with names in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.brokers import BrokerAdmin
from broker.admin.namespaces import NamespaceAdmin
from broker.admin.not_built import NotBuiltAdmin
from broker.admin.tenants import TenantAdmin
from broker.admin.topic_lookup import LookupAdmin
from broker.admin.topics import TopicAdmin
from server.front_page import Place

if TYPE_CHECKING:
    from aiohttp import web

    from broker.admin.admin_parts import AdminParts

ADMIN_PLACES = (
    Place("/admin/v2/brokers/version", "the version"),
    Place("/admin/v2/brokers/configuration/runtime", "every key with the value in force"),
    Place("/admin/v2/tenants", "Pulsar's admin REST: tenants"),
    Place("/admin/v2/namespaces/{tenant}", "their namespaces"),
    Place("/admin/v2/persistent/{tenant}/{namespace}", "their topics"),
    Place("/lookup/v2/topic/persistent/{tenant}/{namespace}/{topic}", "who serves a topic"),
)
"""Where to begin: what the front page names of it."""


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

"""Tenants, namespaces, dynamic configuration and imports in a PostgreSQL store.

Creating a namespace takes a shared lock of the row ``first_version`` of ``marks``; deleting a
namespace or tenant takes an exclusive lock. So no namespace enters a tenant under deletion, and a
recreated namespace continues above its old versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.stores.changes import NamespaceNotEmptyError
from broker.stores.postgresql.policies import delete_policies, write_policy
from broker.stores.postgresql.view import KnownNamespace
from broker.stores.store import NamespacePolicies, TenantInfo
from proto.names import NamespaceName
from server.tasks.cooperative import in_turns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.stores.postgresql.driver import Connection

FIRST_VERSION = "SELECT value FROM floodgate.marks WHERE name = 'first_version'"


async def read_tenants(connection: Connection) -> dict[str, TenantInfo]:
    """Return the tenants by name, in order."""
    query = "SELECT name, roles, clusters FROM floodgate.tenants ORDER BY name"
    found: dict[str, TenantInfo] = {}
    async for name, roles, clusters in in_turns(await connection.fetch(query)):
        found[name.decode()] = TenantInfo.of_json(roles, clusters)
    return found


async def read_tenant(connection: Connection, name: str) -> TenantInfo | None:
    """Return a tenant; None if missing."""
    query = "SELECT roles, clusters FROM floodgate.tenants WHERE name = $1"
    row = await connection.fetchrow(query, name.encode())
    return TenantInfo.of_json(*row) if row is not None else None


async def insert_tenant(connection: Connection, name: str, info: TenantInfo) -> bool:
    """Add a tenant; false if present."""
    query = "INSERT INTO floodgate.tenants VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
    return changed_some(await connection.execute(query, name.encode(), *info.as_json()))


async def update_tenant(connection: Connection, name: str, info: TenantInfo) -> bool:
    """Replace a tenant's values; false if missing."""
    query = "UPDATE floodgate.tenants SET roles = $2, clusters = $3 WHERE name = $1"
    return changed_some(await connection.execute(query, name.encode(), *info.as_json()))


async def delete_tenant(connection: Connection, name: str) -> bool:
    """Delete a tenant without namespaces; false if missing."""
    async with connection.transaction():
        await connection.execute(f"{FIRST_VERSION} FOR UPDATE")
        inside = "SELECT 1 FROM floodgate.namespaces WHERE tenant = $1 LIMIT 1"
        if await connection.fetchval(inside, name.encode()):
            raise NamespaceNotEmptyError
        query = "DELETE FROM floodgate.tenants WHERE name = $1"
        return changed_some(await connection.execute(query, name.encode()))


async def read_namespaces(connection: Connection, tenant: str | None) -> list[NamespaceName]:
    """Return all namespaces, or the namespaces of a tenant, in order."""
    query, values = "SELECT name FROM floodgate.namespaces", tuple[bytes, ...]()
    if tenant is not None:
        query, values = f"{query} WHERE tenant = $1", (tenant.encode(),)
    rows = in_turns(await connection.fetch(f"{query} ORDER BY name", *values))
    return [NamespaceName.parse(row[0]) async for row in rows]


async def create_namespace(
    connection: Connection,
    namespace: NamespaceName,
    policies: NamespacePolicies,
    document: Mapping[str, object],
    sender: str,
) -> KnownNamespace | None:
    """Create an empty namespace with message policies, and notify other brokers.

    Return the namespace's number and version; None when the namespace exists.
    """
    async with connection.transaction():
        number = await insert_namespace(connection, namespace, policies)
        if number is None:
            return None
        version = await connection.fetchval(FIRST_VERSION)
        await delete_policies(connection, [str(namespace)], sender)
        for key, value in document.items():
            await write_policy(connection, str(namespace), key, value, sender)
        return KnownNamespace(number, version)


async def insert_namespace(
    connection: Connection, namespace: NamespaceName, policies: NamespacePolicies
) -> int | None:
    """Insert a namespace and its tenant; return the namespace's number, None if present.

    The caller's transaction holds the row's lock.
    """
    version = await connection.fetchval(f"{FIRST_VERSION} FOR SHARE")
    await insert_tenant(connection, namespace.tenant, TenantInfo())
    query = (
        "INSERT INTO floodgate.namespaces (name, tenant, version, bundles)"
        " VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING id"
    )
    tenant = namespace.tenant.encode()
    number: int | None = await connection.fetchval(
        query, str(namespace), tenant, version, policies.bundles
    )
    return number


async def read_policies(connection: Connection, namespace: str) -> NamespacePolicies | None:
    """Return a namespace's policies; None if missing."""
    query = "SELECT bundles FROM floodgate.namespaces WHERE name = $1"
    bundles = await connection.fetchval(query, namespace)
    return NamespacePolicies(bundles) if bundles is not None else None


async def read_configuration(connection: Connection) -> dict[str, str]:
    """Return the values set at run time."""
    rows = await connection.fetch("SELECT key, value FROM floodgate.configuration ORDER BY key")
    return {row[0].decode(): row[1].decode() for row in rows}


async def write_configuration(
    connection: Connection, key: str, value: str | None, sender: str
) -> None:
    """Set or remove a value, and notify other brokers."""
    async with connection.transaction():
        if value is None:
            query = "DELETE FROM floodgate.configuration WHERE key = $1"
            await connection.execute(query, key.encode())
        else:
            query = (
                "INSERT INTO floodgate.configuration VALUES ($1, $2)"
                " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
            )
            await connection.execute(query, key.encode(), value.encode())
        await connection.execute("SELECT pg_notify('floodgate_configuration', $1)", sender)


async def has_imported(connection: Connection, fingerprint: str) -> bool:
    """Tell whether an import is recorded."""
    query = "SELECT EXISTS (SELECT 1 FROM floodgate.marks WHERE name = $1)"
    return bool(await connection.fetchval(query, f"import {fingerprint}"))


async def remember_import(connection: Connection, fingerprint: str) -> None:
    """Record an import."""
    query = "INSERT INTO floodgate.marks VALUES ($1, 1) ON CONFLICT DO NOTHING"
    await connection.execute(query, f"import {fingerprint}")


async def next_instance(connection: Connection) -> int:
    """Count up, and return the number before."""
    query = (
        "INSERT INTO floodgate.marks AS mark VALUES ('instances', 1)"
        " ON CONFLICT (name) DO UPDATE SET value = mark.value + 1 RETURNING value"
    )
    return int(await connection.fetchval(query)) - 1


def changed_some(status: str) -> bool:
    """Tell whether a command changed a row; a status ends with the row count."""
    return not status.endswith(" 0")

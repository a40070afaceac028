"""``floodgate-admin tenants`` and ``floodgate-admin clusters``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.admin.commands.options import flag
from client.admin.commands.shows import Done, names, table
from client.admin.commands.verbs import Function, Verb, add, group

if TYPE_CHECKING:
    from client.admin.commands.call import Call
    from client.admin.commands.output import Output
    from client.admin.commands.shows import Asked

tenants = group("tenants", "Tenants, and the roles that administer them.", "create acme", "list",
                "VERB --help")  # fmt: skip
clusters = group("clusters", "Clusters and their addresses.", "list", "get standalone")  # fmt: skip


def create_tenant(
    call: Call, tenant: str, admin_roles: list[str], allowed_clusters: list[str]
) -> None:
    """Create a tenant. Without -c it may use all clusters.

    Examples:
    floodgate-admin tenants create acme
    floodgate-admin tenants create acme -r ann,bob -c standalone
    """
    call.change(
        f"create the tenant {tenant}",
        f"created {tenant}",
        lambda admin: admin.tenants.create(tenant, admin_roles, allowed_clusters),
    )


def update_tenant(
    call: Call, tenant: str, admin_roles: list[str], allowed_clusters: list[str]
) -> None:
    """Change the roles or the clusters of a tenant; an option that is not given changes nothing.

    Examples:
    floodgate-admin tenants update acme -r ann
    """
    call.change(
        f"change the tenant {tenant}",
        f"updated {tenant}",
        lambda admin: admin.tenants.update(tenant, admin_roles, allowed_clusters),
    )


async def _clusters(asked: Asked, output: Output) -> None:
    """Show the clusters, with the contacted cluster marked."""
    names = await asked.rest.strings(asked.path)
    if asked.values["current"]:
        found = await asked.rest.mapping("/admin/v2/brokers/configuration/runtime")
        names = [f"{name}(*)" if name == found.get("clusterName") else name for name in names]
    output.names(names)


_CURRENT = {"current": flag("--current -c", "Mark the cluster of --admin-url with (*).")}
add(
    tenants,
    Verb("list", "List all tenants.", "GET tenants", "list the tenants", names),
    Verb("get", "Show the admin roles of a tenant, and the clusters it may use.",
         "GET tenants/{tenant}", "get the tenant {tenant}", table),
    Function("create", create_tenant),
    Function("update", update_tenant),
    Verb("delete", "Delete a tenant that has no namespaces.",
         "DELETE tenants/{tenant}?force={with_namespaces}", "delete the tenant {tenant}",
         Done("deleted {tenant}")),
)  # fmt: skip
add(
    clusters,
    Verb("list", "List all clusters.", "GET clusters", "list the clusters", _clusters,
         own=_CURRENT),
    Verb("get", "Show the addresses of a cluster.", "GET clusters/{cluster}",
         "get the cluster {cluster}", table),
)  # fmt: skip

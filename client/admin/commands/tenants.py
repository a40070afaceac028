"""``floodgate-admin tenants`` and ``floodgate-admin clusters``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.admin.commands.shows import Done, names, table
from client.admin.commands.verbs import Function, Verb, add, group

if TYPE_CHECKING:
    from client.admin.commands.call import Call
    from client.admin.commands.output import Output
    from client.admin.pulsar_admin import PulsarAdmin

tenants = group(
    "tenants",
    "Tenants, and the roles that administer them.",
    """floodgate-admin tenants create acme
floodgate-admin tenants list
floodgate-admin tenants VERB --help""",
)
clusters = group(
    "clusters",
    "Clusters and their addresses.",
    """floodgate-admin clusters list
floodgate-admin clusters get standalone""",
)


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
        lambda admin: admin.tenants.create(tenant, admin_roles, allowed_clusters),
        "created",
        tenant,
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
        lambda admin: admin.tenants.update(tenant, admin_roles, allowed_clusters),
        "updated",
        tenant,
    )


def list_clusters(call: Call, current: bool) -> None:
    """List all clusters.

    Examples:
    floodgate-admin clusters list
    """

    async def write(admin: PulsarAdmin, output: Output) -> None:
        names = await admin.clusters.list()
        if current:
            here = (await admin.brokers.runtime_configuration()).get("clusterName")
            names = [f"{name}(*)" if name == here else name for name in names]
        output.names(names)

    call.run("list the clusters", write)


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
    Function("list", list_clusters),
    Verb("get", "Show the addresses of a cluster.", "GET clusters/{cluster}",
         "get the cluster {cluster}", table),
)  # fmt: skip

"""``floodgate-admin tenants`` and ``floodgate-admin clusters``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from client.admin.commands.call import Call, Changed
from client.admin.commands.options import Tenant, verb, words_of

if TYPE_CHECKING:
    from client.admin.commands.output import Output
    from client.admin.pulsar_admin import PulsarAdmin

tenants = typer.Typer(
    no_args_is_help=True,
    help="Tenants, and the roles that administer them.",
    epilog="""Examples:
floodgate-admin tenants create acme
floodgate-admin tenants list
floodgate-admin tenants VERB --help""",
)
clusters = typer.Typer(
    no_args_is_help=True,
    help="Clusters and their addresses.",
    epilog="""Examples:
floodgate-admin clusters list
floodgate-admin clusters get standalone""",
)

Roles = Annotated[
    list[str] | None,
    typer.Option(
        "--admin-roles", "-r", metavar="A,B", help="Roles that may administer the tenant."
    ),
]
Allowed = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed-clusters", "-c", metavar="A,B", help="Clusters that the tenant may use."
    ),
]


@verb(tenants, "list")
def list_tenants(call: Call) -> None:
    """List all tenants.

    Examples:
    floodgate-admin tenants list
    """
    call.few("list the tenants", lambda admin: admin.tenants.list())


@verb(tenants, "get")
def get_tenant(call: Call, tenant: Tenant) -> None:
    """Show the admin roles of a tenant, and the clusters it may use.

    Examples:
    floodgate-admin tenants get acme
    """
    call.table(f"get the tenant {tenant}", lambda admin: admin.tenants.get(tenant))


@verb(tenants, "create")
def create_tenant(
    call: Call, tenant: Tenant, admin_roles: Roles = None, allowed_clusters: Allowed = None
) -> None:
    """Create a tenant. Without -c it may use all clusters.

    Examples:
    floodgate-admin tenants create acme
    floodgate-admin tenants create acme -r ann,bob -c standalone
    """
    call.change(
        f"create the tenant {tenant}",
        Changed("created", tenant),
        lambda admin: admin.tenants.create(
            tenant, words_of(admin_roles), words_of(allowed_clusters)
        ),
    )


@verb(tenants, "update")
def update_tenant(
    call: Call, tenant: Tenant, admin_roles: Roles = None, allowed_clusters: Allowed = None
) -> None:
    """Change the roles or the clusters of a tenant; an option that is not given changes nothing.

    Examples:
    floodgate-admin tenants update acme -r ann
    """
    call.change(
        f"change the tenant {tenant}",
        Changed("updated", tenant),
        lambda admin: admin.tenants.update(
            tenant, words_of(admin_roles), words_of(allowed_clusters)
        ),
    )


@verb(tenants, "delete")
def delete_tenant(
    call: Call,
    tenant: Tenant,
    force: Annotated[
        bool,
        typer.Option("--force", "-f", help="Delete its namespaces too, if the broker allows it."),
    ] = False,
) -> None:
    """Delete a tenant that has no namespaces.

    Examples:
    floodgate-admin tenants delete acme
    """
    call.change(
        f"delete the tenant {tenant}",
        Changed("deleted", tenant),
        lambda admin: admin.tenants.delete(tenant, force=force),
    )


@verb(clusters, "list")
def list_clusters(
    call: Call,
    current: Annotated[
        bool, typer.Option("--current", "-c", help="Mark the cluster of --admin-url with (*).")
    ] = False,
) -> None:
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


@verb(clusters, "get")
def get_cluster(call: Call, cluster: Annotated[str, typer.Argument(metavar="CLUSTER")]) -> None:
    """Show the addresses of a cluster.

    Examples:
    floodgate-admin clusters get standalone
    """
    call.table(f"get the cluster {cluster}", lambda admin: admin.clusters.get(cluster))

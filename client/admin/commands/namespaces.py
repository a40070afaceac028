"""``floodgate-admin namespaces``, ``tenants``, ``clusters``, and commands for permissions."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from client.admin.commands.options import Option, flag, words
from client.admin.commands.verbs import (
    Done,
    Function,
    Verb,
    add,
    group,
    lines,
    names,
    set_members,
    table,
    value,
)

if TYPE_CHECKING:
    from client.admin.commands.call import Call
    from client.admin.commands.output import Output
    from client.admin.commands.verbs import Asked


def _of(subject: str, path: str) -> tuple[Verb, ...]:
    return (
        Verb("permissions", "Show the roles with permissions, and their actions.", f"GET {path}",
             f"get the permissions of {subject}", value),
        Verb("grant-permission", "Grant a role permission for some actions.",
             f"POST {path}/{{role}} {{actions}}", f"grant {{role}} permissions on {subject}",
             Done(f"updated {subject}", "role actions"), "--role app --actions produce,consume"),
        Verb("revoke-permission", "Revoke all permissions of a role.", f"DELETE {path}/{{role}}",
             f"revoke the permissions of {{role}} on {subject}",
             Done(f"updated {subject}", "revoked=role"), "--role app"),
    )  # fmt: skip


_PATH = "namespaces/{namespace}/permissions"
OF_TOPICS = _of("{topic}", "{topic}/permissions")
OF_NAMESPACES = (
    *_of("{namespace}", _PATH),
    Verb("subscription-permission", "Show the subscriptions that are restricted to some roles.",
         f"GET {_PATH}/subscription", "get the permissions on subscriptions in {namespace}", value),
    Verb("grant-subscription-permission", "Restrict a subscription to some roles.",
         f"POST {_PATH}/subscription/{{subscription}} {{roles}}",
         "restrict the subscription {subscription} in {namespace}",
         Done("updated {namespace}", "subscription roles"), "-s billing --roles app"),
    Verb("revoke-subscription-permission", "Remove a role from those that may use a subscription.",
         f"DELETE {_PATH}/{{subscription}}/{{role}}",
         "remove {role} from the subscription {subscription} in {namespace}",
         Done("updated {namespace}", "subscription revoked=role"), "-s billing -r app"),
)  # fmt: skip


tenants = group("tenants", "Tenants, and the roles that administer them.", "create acme", "list",
                "VERB --help")  # fmt: skip
clusters = group("clusters", "Clusters and their addresses.", "list", "get standalone")  # fmt: skip


def create_tenant(
    call: Call, tenant: str, admin_roles: list[str], allowed_clusters: list[str]
) -> None:
    """Create a tenant; without -c it may use all clusters.

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
    """Change the roles or the clusters of a tenant; an omitted option changes nothing.

    Examples:
    floodgate-admin tenants update acme -r ann
    """
    call.change(
        f"change the tenant {tenant}",
        f"updated {tenant}",
        lambda admin: admin.tenants.update(tenant, admin_roles, allowed_clusters),
    )


async def _clusters(asked: Asked, output: Output) -> None:
    """Write the clusters' names, and mark the cluster of the contacted broker."""
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


app = group("namespaces", "Namespaces, their policies and permissions.", "create acme/orders",
            "list acme", "VERB --help")  # fmt: skip


def _ranges(found: dict[str, Any]) -> list[str]:
    """Return the hash ranges (bundles) between the boundaries that a response lists."""
    return [f"{low}_{high}" for low, high in pairwise(found.get("boundaries") or [])]


_CREATION = {
    "bundles": Option(int, "--bundles -b", "Number of hash ranges (bundles).", None, None, least=1,
                      made=lambda number: number and {"numBundles": number}),
    "replication_clusters": words("--clusters -c", "Clusters that serve the namespace.", None),
}  # fmt: skip
add(
    app,
    Verb("list", "List the namespaces of a tenant.", "GET namespaces/{tenant}",
         "list the namespaces of {tenant}", names),
    Verb("create", "Create a namespace. Its tenant must exist.", "PUT namespaces/{namespace} {*}",
         "create the namespace {namespace}", Done("created {namespace}"), "\n-b 16", _CREATION),
    Verb("delete", "Delete a namespace that has no topics.",
         "DELETE namespaces/{namespace}?force={force}", "delete the namespace {namespace}",
         Done("deleted {namespace}")),
    Verb("policies", "Show the policies that a namespace sets; --json shows all.",
         "GET namespaces/{namespace}", "get the policies of {namespace}", set_members),
    Verb("topics", "List the topics of a namespace by the REST path of clients with HTTP lookup.",
         "GET namespaces/{namespace}/topics?mode={mode}&includeSystemTopic={include_system_topic}",
         "list the topics of {namespace}", names, "-m all"),
    Verb("bundles", "List the hash ranges (bundles) of a namespace, for `topics list -b`.",
         "GET namespaces/{namespace}/bundles", "get the bundles of {namespace}", lines(_ranges)),
    Verb("unload", "Close all topics of a namespace; their clients reconnect.",
         "PUT namespaces/{namespace}/{bundle}/unload", "unload {namespace}",
         Done("unloaded {namespace}")),
    Verb("clear-backlog", "Skip all messages of all subscriptions, or of those with one name.",
         "POST namespaces/{namespace}/{bundle}/clearBacklog/{only_sub}",
         "clear the backlogs of {namespace}", Done("cleared the backlogs of {namespace}"),
         "-s billing"),
    Verb("unsubscribe", "Delete all subscriptions with one name in a namespace.",
         "POST namespaces/{namespace}/{bundle}/unsubscribe/{subscriptions}",
         "delete the subscriptions {subscriptions} of {namespace}",
         Done("deleted {subscriptions}", "namespace"), "-s billing"),
)  # fmt: skip

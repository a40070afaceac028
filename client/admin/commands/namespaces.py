"""``floodgate-admin namespaces``."""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import typer

from client.admin.commands.call import Call, Changed
from client.admin.commands.options import Force, Namespace, SystemTopics, Tenant, verb, words_of

if TYPE_CHECKING:
    from client.admin.commands.output import Output
    from client.admin.pulsar_admin import PulsarAdmin

app = typer.Typer(
    no_args_is_help=True,
    help="Namespaces, their policies and permissions.",
    epilog="""Examples:
floodgate-admin namespaces create acme/orders
floodgate-admin namespaces list acme
floodgate-admin namespaces VERB --help""",
)


class Mode(StrEnum):
    """The topics that a namespace lists, spelled as pulsar-admin does."""

    PERSISTENT = "persistent"
    NON_PERSISTENT = "non_persistent"
    ALL = "all"


@verb(app, "list")
def list_namespaces(call: Call, tenant: Tenant) -> None:
    """List the namespaces of a tenant.

    Examples:
    floodgate-admin namespaces list acme
    """
    call.few(f"list the namespaces of {tenant}", lambda admin: admin.namespaces.list(tenant))


@verb(app, "create")
def create(
    call: Call,
    namespace: Namespace,
    bundles: Annotated[
        int | None,
        typer.Option("--bundles", "-b", min=1, help="Number of hash ranges (bundles)."),
    ] = None,
    clusters: Annotated[
        list[str] | None,
        typer.Option("--clusters", "-c", metavar="A,B", help="Clusters that serve the namespace."),
    ] = None,
) -> None:
    """Create a namespace. Its tenant must exist.

    Examples:
    floodgate-admin namespaces create acme/orders
    floodgate-admin namespaces create acme/orders -b 16
    """
    call.change(
        f"create the namespace {namespace}",
        Changed("created", namespace),
        lambda admin: admin.namespaces.create(namespace, bundles, words_of(clusters)),
    )


@verb(app, "delete")
def delete(call: Call, namespace: Namespace, force: Force = False) -> None:
    """Delete a namespace that has no topics.

    Examples:
    floodgate-admin namespaces delete acme/orders
    """
    call.change(
        f"delete the namespace {namespace}",
        Changed("deleted", namespace),
        lambda admin: admin.namespaces.delete(namespace, force=force),
    )


@verb(app, "policies")
def policies(call: Call, namespace: Namespace) -> None:
    """Show the policies that a namespace sets; --json shows all.

    Examples:
    floodgate-admin namespaces policies acme/orders
    """
    call.table(
        f"get the policies of {namespace}",
        lambda admin: admin.namespaces.policies(namespace),
        hide_unset=True,
    )


@verb(app, "topics")
def topics(
    call: Call,
    namespace: Namespace,
    mode: Annotated[
        Mode | None,
        typer.Option("--mode", "-m", help="Topics to list; without it persistent ones."),
    ] = None,
    include_system_topic: SystemTopics = False,
) -> None:
    """List the topics of a namespace by the REST path of clients with HTTP lookup.

    Examples:
    floodgate-admin namespaces topics acme/orders -m all
    """
    call.names(
        f"list the topics of {namespace}",
        lambda admin: admin.namespaces.topics(
            namespace,
            mode.value.upper() if mode else None,
            include_system_topics=include_system_topic,
        ),
    )


@verb(app, "bundles")
def bundles(call: Call, namespace: Namespace) -> None:
    """List the hash ranges (bundles) of a namespace, for `topics list -b`.

    Examples:
    floodgate-admin namespaces bundles acme/orders
    """

    async def write(admin: PulsarAdmin, output: Output) -> None:
        found = await admin.namespaces.bundles(namespace)
        if output.as_json:
            output.json(found)
        else:
            output.names(ranges(found.get("boundaries") or []))

    call.run(f"get the bundles of {namespace}", write)


Bundle = Annotated[
    str | None,
    typer.Option("--bundle", "-b", metavar="RANGE", help="Only this hash range (bundle)."),
]


def _of(bundle: str | None, *segments: str) -> list[str]:
    return [*([bundle] if bundle else ()), *segments]


@verb(app, "unload")
def unload(call: Call, namespace: Namespace, bundle: Bundle = None) -> None:
    """Close all topics of a namespace; their clients reconnect.

    Examples:
    floodgate-admin namespaces unload acme/orders
    """
    call.change(
        f"unload {namespace}",
        Changed("unloaded", namespace),
        lambda admin: admin.calls.ask("PUT", namespace, *_of(bundle, "unload")),
    )


@verb(app, "clear-backlog")
def clear_backlog(
    call: Call,
    namespace: Namespace,
    subscription: Annotated[
        str | None,
        typer.Option("--sub", "-s", metavar="NAME", help="Only subscriptions with this name."),
    ] = None,
    bundle: Bundle = None,
) -> None:
    """Skip all messages of all subscriptions, or of those with one name.

    Examples:
    floodgate-admin namespaces clear-backlog acme/orders -s billing
    """
    segments = _of(bundle, "clearBacklog", *([subscription] if subscription else ()))
    call.change(
        f"clear the backlogs of {namespace}",
        Changed("cleared", f"the backlogs of {namespace}"),
        lambda admin: admin.calls.ask("POST", namespace, *segments),
    )


@verb(app, "unsubscribe")
def unsubscribe(
    call: Call,
    namespace: Namespace,
    subscription: Annotated[
        str, typer.Option("--sub", "-s", metavar="NAME", help="Name of the subscriptions.")
    ],
    bundle: Bundle = None,
) -> None:
    """Delete all subscriptions with one name in a namespace.

    Examples:
    floodgate-admin namespaces unsubscribe acme/orders -s billing
    """
    call.change(
        f"delete the subscriptions {subscription} of {namespace}",
        Changed("deleted", subscription, namespace=str(namespace)),
        lambda admin: admin.calls.ask("POST", namespace, *_of(bundle, "unsubscribe", subscription)),
    )


def ranges(boundaries: list[str]) -> list[str]:
    """Return the ranges between boundaries."""
    return [f"{low}_{high}" for low, high in pairwise(boundaries)]

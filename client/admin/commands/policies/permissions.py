"""Permissions of roles: of ``floodgate-admin namespaces`` and ``topics``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from client.admin.commands.call import Call, Changed
from client.admin.commands.options import Namespace, Topic, verb, words_of

if TYPE_CHECKING:
    from client.admin.calls import Subject

Role = Annotated[str, typer.Option("--role", "-r", metavar="ROLE", help="Role of the clients.")]
Actions = Annotated[
    list[str],
    typer.Option(
        "--actions",
        metavar="A,B",
        help="Allowed actions: produce, consume, packages, functions, sources, sinks.",
    ),
]
Subscription = Annotated[
    str, typer.Option("--subscription", "-s", metavar="NAME", help="Name of the subscription.")
]
Roles = Annotated[
    list[str],
    typer.Option(
        "--roles", metavar="A,B", help="Roles that may use the subscription; no others may."
    ),
]


def add_permissions(of_namespaces: typer.Typer, of_topics: typer.Typer) -> None:
    """Give both groups the verbs that grant, revoke and show permissions."""
    for group, shown in ((of_namespaces, "namespaces {} acme/orders"), (of_topics, "topics {} eu")):
        _add(group, f"floodgate-admin {shown}", topics=group is of_topics)
    verb(of_namespaces, "subscription-permission")(_of_subscriptions)
    verb(of_namespaces, "grant-subscription-permission")(_grant_subscription)
    verb(of_namespaces, "revoke-subscription-permission")(_revoke_subscription)


def _add(group: typer.Typer, example: str, *, topics: bool) -> None:
    kind = Topic if topics else Namespace

    def show(call: Call, subject: Subject) -> None:
        call.value(
            f"get the permissions of {subject}",
            lambda admin: admin.calls.ask("GET", subject, "permissions"),
        )

    def grant(call: Call, subject: Subject, role: Role, actions: Actions) -> None:
        allowed = words_of(actions)
        call.change(
            f"grant {role} permissions on {subject}",
            Changed("updated", subject, role=role, actions=allowed),
            lambda admin: admin.calls.ask("POST", subject, "permissions", role, body=allowed),
        )

    def revoke(call: Call, subject: Subject, role: Role) -> None:
        call.change(
            f"revoke the permissions of {role} on {subject}",
            Changed("updated", subject, revoked=role),
            lambda admin: admin.calls.ask("DELETE", subject, "permissions", role),
        )

    for name, function, options, text in (
        ("permissions", show, "", "Show the roles with permissions, and their actions."),
        (
            "grant-permission",
            grant,
            " --role app --actions produce,consume",
            "Grant a role permission for some actions.",
        ),
        ("revoke-permission", revoke, " --role app", "Revoke all permissions of a role."),
    ):
        function.__annotations__["subject"] = kind
        function.__doc__ = f"{text}\n\nExamples:\n{example.format(name)}{options}"
        verb(group, name)(function)


def _of_subscriptions(call: Call, namespace: Namespace) -> None:
    """Show the subscriptions that are restricted to some roles.

    Examples:
    floodgate-admin namespaces subscription-permission acme/orders
    """
    call.value(
        f"get the permissions on subscriptions in {namespace}",
        lambda admin: admin.calls.ask("GET", namespace, "permissions", "subscription"),
    )


def _grant_subscription(
    call: Call, namespace: Namespace, subscription: Subscription, roles: Roles
) -> None:
    """Restrict a subscription to some roles.

    Examples:
    floodgate-admin namespaces grant-subscription-permission acme/orders -s billing --roles app
    """
    allowed = words_of(roles)
    call.change(
        f"restrict the subscription {subscription} in {namespace}",
        Changed("updated", namespace, subscription=subscription, roles=allowed),
        lambda admin: admin.calls.ask(
            "POST", namespace, "permissions", "subscription", subscription, body=allowed
        ),
    )


def _revoke_subscription(
    call: Call, namespace: Namespace, subscription: Subscription, role: Role
) -> None:
    """Remove a role from those that may use a subscription.

    Examples:
    floodgate-admin namespaces revoke-subscription-permission acme/orders -s billing -r app
    """
    call.change(
        f"remove {role} from the subscription {subscription} in {namespace}",
        Changed("updated", namespace, subscription=subscription, revoked=role),
        lambda admin: admin.calls.ask("DELETE", namespace, "permissions", subscription, role),
    )

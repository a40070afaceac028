"""Permissions of roles: of ``floodgate-admin namespaces`` and ``topics``."""

from __future__ import annotations

from client.admin.commands.shows import Done, value
from client.admin.commands.verbs import Verb


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

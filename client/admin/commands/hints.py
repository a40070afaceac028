"""Hints for the refusals that users meet first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Remedy:
    """A hint.

    Attributes:
        status: The HTTP status.
        words: What the reason contains.
        hint: What is said behind the reason.
    """

    status: int
    words: str
    hint: str


_REMEDIES = (
    _Remedy(404, "Tenant", "`floodgate-admin tenants list` shows what there is"),
    _Remedy(404, "Namespace", "`floodgate-admin namespaces list TENANT` shows what there is"),
    _Remedy(404, "Topic ", "`floodgate-admin topics list NAMESPACE` shows what there is"),
    _Remedy(404, "does not serve /admin/v2/floodgate", "only a Floodgate broker has it"),
    _Remedy(404, "does not serve", "is --admin-url the web port of a broker?"),
    _Remedy(405, "deletion of namespaces", "forceDeleteNamespaceAllowed=true allows it"),
    _Remedy(405, "deletion of tenants", "forceDeleteTenantAllowed=true allows it"),
    _Remedy(409, "non empty namespace", "delete its topics first"),
    _Remedy(409, "active namespaces", "delete them first"),
    _Remedy(
        412,
        "non-dynamic configuration",
        "`floodgate-admin brokers list-dynamic-config` shows the keys that can change",
    ),
)


def remedy(status: int, reason: str) -> str:
    """Return a hint for a refusal; empty where there is none."""
    for known in _REMEDIES:
        if known.status == status and known.words in reason:
            return known.hint
    return ""

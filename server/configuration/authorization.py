"""Pulsar's authorization keys, as immutable settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys

_PACKAGE = "org.apache.pulsar.broker.authorization."
DEFAULT_PROVIDER = f"{_PACKAGE}PulsarAuthorizationProvider"
MULTI_ROLES_PROVIDER = f"{_PACKAGE}MultiRolesTokenAuthorizationProvider"
PROVIDERS = (DEFAULT_PROVIDER, MULTI_ROLES_PROVIDER)
"""Supported classes of ``authorizationProvider``, both built in."""


class AuthorizationSettings(NamedTuple):
    """The authorization configuration: superuser roles, proxy roles, and how roles match.

    Attributes:
        superusers: ``superUserRoles``.
        proxy_roles: ``proxyRoles``; a proxy has no such key.
        wildcards: ``authorizationAllowWildcardsMatching``: grants to ``abc*`` and ``*abc`` match
            all roles with the prefix or suffix.
        multi_roles: ``authorizationProvider`` is the provider that checks all roles of a token.
    """

    superusers: frozenset[str] = frozenset()
    proxy_roles: frozenset[str] = frozenset()
    wildcards: bool = False
    multi_roles: bool = False


def authorization_settings(checked: CheckedKeys, *, proxy: bool) -> AuthorizationSettings | None:
    """Return the authorization settings of a server; None if authorization is off.

    Invalid values become problems of ``checked``.
    """
    if not checked.flag("authorizationEnabled"):
        return None
    if not checked.flag("authenticationEnabled"):
        checked.refuse(
            "authorizationEnabled=true without authenticationEnabled=true: no role would be known, "
            "and so nothing allowed; set both, or none"
        )
    provider = checked.text("authorizationProvider") or DEFAULT_PROVIDER
    if provider not in PROVIDERS:
        checked.refuse(
            f"authorizationProvider={provider!r:.120}: no such provider here; "
            f"there are {', '.join(PROVIDERS)}"
        )
    return AuthorizationSettings(
        superusers=frozenset(checked.names("superUserRoles")),
        proxy_roles=frozenset() if proxy else frozenset(checked.names("proxyRoles")),
        wildcards=not proxy and checked.flag("authorizationAllowWildcardsMatching"),
        multi_roles=provider == MULTI_ROLES_PROVIDER,
    )

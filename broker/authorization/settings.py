"""The keys of authorization, by Pulsar's names."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_PROVIDER = "org.apache.pulsar.broker.authorization.PulsarAuthorizationProvider"
MULTI_ROLES_PROVIDER = "org.apache.pulsar.broker.authorization.MultiRolesTokenAuthorizationProvider"
PROVIDERS = (DEFAULT_PROVIDER, MULTI_ROLES_PROVIDER)
"""Classes that ``authorizationProvider`` may name; both are built in."""


@dataclass(frozen=True, slots=True)
class AuthorizationSettings:
    """Who may do everything, and who may speak for others.

    Attributes:
        superusers: ``superUserRoles``.
        proxy_roles: ``proxyRoles``.
        wildcards: ``authorizationAllowWildcardsMatching``: grants to ``abc*`` and ``*abc`` are for
            all roles that begin or end so.
    """

    superusers: frozenset[str] = frozenset()
    proxy_roles: frozenset[str] = frozenset()
    wildcards: bool = False

"""Assembly of a broker's authorization from its decisions, command checks and revocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.authorization.questions import CommandAuthorization
from broker.authorization.revocation import Revocation
from broker.authorization.service import AuthorizationService
from broker.authorization.tenant_admins import TenantAdmins
from server.configuration.common import Profile

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from broker.authorization.revocation import User
    from broker.configuration.config import BrokerConfig
    from broker.policies.service import PolicyService
    from broker.stores.store import MetadataStore
    from limiter.clock import Clock
    from server.authentication.refused import RefusedOperations
    from server.configuration.authorization import AuthorizationSettings


class AuthorizationParts(NamedTuple):
    """The services of a broker's authorization.

    Attributes:
        service: Decides whether a session may perform an operation.
        commands: Checks binary protocol commands.
        tenants: The admin roles of tenants.
        revocation: Closes producers, consumers and watches after a revocation.
    """

    service: AuthorizationService
    commands: CommandAuthorization
    tenants: TenantAdmins
    revocation: Revocation


def authorization_parts(
    config: Callable[[], BrokerConfig],
    store: MetadataStore,
    policies: PolicyService,
    connections: Collection[User],
    clock: Clock,
    refused: RefusedOperations,
) -> AuthorizationParts | None:
    """Return the services of a broker's authorization, or None if authorization is off.

    Args:
        config: Returns the effective configuration: superusers change at run time.
        store: The store of tenants and their admins.
        policies: The policies of namespaces, which contain the grants.
        connections: The open connections.
        clock: The broker's clock.
        refused: Counts refused operations.
    """
    if (first := config().authorization) is None:
        return None

    def settings() -> AuthorizationSettings:
        return config().authorization or first

    tenants = TenantAdmins(store, clock)
    service = AuthorizationService(settings, tenants, policies, refused)
    pulsar_compatible = config().profile is Profile.PULSAR
    revocation = Revocation(service, connections, clock)
    policies.on_change(revocation.policies_changed)
    commands = CommandAuthorization(service, revocation, pulsar_compatible=pulsar_compatible)
    return AuthorizationParts(service, commands, tenants, revocation)

"""The recordings' world in a memory store, with its authorization service."""

from broker.authorization.grants import KEY, OF_NAMESPACE, OF_SUBSCRIPTIONS, OF_TOPICS
from broker.authorization.service import AuthorizationService
from broker.authorization.tenant_admins import TenantAdmins
from broker.policies.effective import DEFAULTS
from broker.policies.service import PolicyService
from broker.stores.memory import MemoryStore
from broker.stores.store import TenantInfo
from proto.names import NamespaceName
from server.authentication.refused import RefusedOperations
from server.configuration.authorization import AuthorizationSettings
from tests.support.clocks.manual_clock import ManualClock
from tests.support.security.credentials import PROXY_ROLES, SUPERUSERS
from tests.support.security.peers import StandInSession, session
from tests.support.security.world import GRANTS, NAMESPACE, TENANT, TOPIC_GRANTS


async def granted_world() -> AuthorizationService:
    """Return the service, with the tenants and grants of the recordings."""
    store, clock = MemoryStore(), ManualClock()
    policies = PolicyService(store, lambda: DEFAULTS, clock)
    await store.create_tenant(TENANT, TenantInfo(("admin",), ("standalone",)))
    await store.create_tenant("rival", TenantInfo(("rival-admin",), ("standalone",)))
    namespace = NamespaceName.parse(NAMESPACE)
    await store.create_namespace(namespace)
    topics = {f"persistent://{NAMESPACE}/{one}": TOPIC_GRANTS for one in ("orders", "parted")}
    grants = {OF_NAMESPACE: GRANTS, OF_TOPICS: topics, OF_SUBSCRIPTIONS: {"owned": ["subscriber"]}}
    await policies.set(namespace, KEY, grants)
    settings = AuthorizationSettings(frozenset(SUPERUSERS), frozenset(PROXY_ROLES), wildcards=True)
    return AuthorizationService(
        lambda: settings, TenantAdmins(store, clock), policies, RefusedOperations(clock)
    )


def session_named(who: str) -> StandInSession:
    """Return a credential's session, by recorded name."""
    role, _, original = who.partition(" for ")
    none = ("(none)", "(no subject)")
    return session("" if role in none else role, "" if original in none else original)

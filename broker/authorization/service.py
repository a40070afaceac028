"""Decisions whether a session may perform an operation.

Superusers may do everything. Admins of a tenant may do everything in the tenant. All other roles
may only perform operations that a grant allows. A proxy and its client must both be allowed.

Source: upstream AuthorizationService, PulsarAuthorizationProvider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.authorization.grants import (
    NO_GRANTS,
    Grants,
    namespace_allows,
    read_grants,
    topic_allows,
)
from broker.authorization.operations import (
    BrokerOperation,
    ClusterOperation,
    ClusterPolicyOperation,
    Level,
    NamespaceOperation,
    PolicyName,
    TenantOperation,
    TopicOperation,
)
from broker.authorization.tenant_admins import TenantMissingError
from proto.names import NamespaceName, TopicName
from server.authentication.peers import (
    all_checked,
    is_believed,
    is_superuser,
    is_superuser_alone,
    roles_of,
)
from server.authentication.refused import Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from broker.authorization.operations import Needs
    from broker.authorization.tenant_admins import TenantAdmins
    from broker.policies.service import PolicyService
    from server.authentication.peers import Peer, Session
    from server.authentication.refused import RefusedOperations
    from server.configuration.authorization import AuthorizationSettings

    Granted: TypeAlias = Callable[[str], bool]
    Operation: TypeAlias = NamespaceOperation | TopicOperation
    Named: TypeAlias = NamespaceName | TopicName

_SUBJECTS = {
    Level: Subject.ROUTE,
    BrokerOperation: Subject.BROKER,
    ClusterOperation: Subject.CLUSTER,
    ClusterPolicyOperation: Subject.CLUSTER,
    TenantOperation: Subject.TENANT,
    NamespaceOperation: Subject.NAMESPACE,
    TopicOperation: Subject.TOPIC,
    PolicyName: Subject.POLICY,
}


class AuthorizationService:
    """Decides whether a session may perform an operation.

    Bound: grants of as many namespaces as have policies, plus one.

    Args:
        settings: Returns the effective settings: superusers change at run time.
        tenants: The admin roles of tenants.
        policies: The policies of namespaces, which contain the grants.
        refused: Counts refused operations.
    """

    def __init__(
        self,
        settings: Callable[[], AuthorizationSettings],
        tenants: TenantAdmins,
        policies: PolicyService,
        refused: RefusedOperations,
    ) -> None:
        self._refused = refused
        self._settings = settings
        self._tenants = tenants
        self._policies = policies
        # By namespace: the document, and the grants read from the document.
        self._read: dict[NamespaceName, tuple[Mapping[str, Any], Grants]] = {}

    def is_superuser(self, session: Session) -> bool:
        """Return True if a session's client and, behind a proxy, the proxy are superusers."""
        return is_superuser(session, self._settings())

    def is_superuser_alone(self, peer: Peer) -> bool:
        """Return True if a peer is a superuser; for a proxy, its client is not considered."""
        return is_superuser_alone(peer, self._settings())

    def is_believed(self, session: Session) -> bool:
        """Return True if a session has no proxy, or a configured proxy that names its client."""
        return is_believed(session, self._settings())

    def refuses(self, session: Session | None, needs: Needs, name: str) -> None:
        """Count the refusal of an operation on the broker, tenant, namespace or topic ``name``."""
        self._refused.add(session, _SUBJECTS[type(needs)], needs.name, name)

    def surely_allows(self, session: Session, subject: Named, operation: Operation) -> bool:
        """Decide from memory alone whether a session is certainly allowed an operation.

        False means that only the store can tell.
        """
        return self._surely(
            session, namespace_named(subject).tenant, self._granted(subject, operation)
        )

    # -- from the store -----------------------------------------------------------------------

    async def allows_tenant(self, session: Session, tenant: str) -> bool:
        """Return True if a session's client and proxy are each a superuser or an admin of a tenant.

        Raises:
            TenantMissingError: The tenant does not exist, and not all peers are superusers.
            StoreError: The store failed.
        """
        return await self._allows(session, tenant, _not_granted)

    async def administers(self, session: Session, tenant: str) -> bool:
        """Return True if a session's client and proxy are both superusers, or both tenant admins.

        As recorded, a superuser on behalf of an admin is refused.

        Raises:
            TenantMissingError: The tenant does not exist, and not all peers are superusers.
            StoreError: The store failed.
        """
        if self.is_superuser(session):
            return True
        if not self.is_believed(session):
            return False
        admins, settings = await self._tenants.read(tenant), self._settings()
        return all(not admins.isdisjoint(roles_of(one, settings)) for one in all_checked(session))

    async def allows(
        self, session: Session, subject: Named, operation: Operation, subscription: str = ""
    ) -> bool:
        """Return True if a session may perform an operation on a namespace or topic.

        Raises:
            TenantMissingError: The tenant does not exist, and not all peers are superusers.
            StoreError: The store failed.
        """
        granted = self._granted(subject, operation, subscription)
        return await self._allows(session, namespace_named(subject).tenant, granted)

    async def reaches(self, session: Session, namespace: NamespaceName, subscription: str) -> bool:
        """Return True if a session is not excluded from the subscriptions with this name.

        Args:
            session: The session of the requester.
            namespace: The namespace of the subscriptions.
            subscription: The name of the subscriptions; if empty, all subscriptions of the
                namespace.

        Raises:
            TenantMissingError: The tenant does not exist, and not all peers are superusers.
            StoreError: The store failed.
        """

        def granted(role: str) -> bool:
            grants = self._grants(namespace)
            if not subscription:
                return not grants.keeps_some_from(role)
            kept = grants.keeps_from(role, subscription)
            return not (kept or grants.lacks_prefix(role, subscription))

        return await self._allows(session, namespace.tenant, granted)

    async def admins(self, tenant: str) -> frozenset[str]:
        """Return the admin roles of a tenant, or an empty set for a missing tenant.

        Raises:
            StoreError: The store failed.
        """
        try:
            return await self._tenants.read(tenant)
        except TenantMissingError:
            return frozenset()

    def allows_now(
        self,
        session: Session,
        subject: Named,
        operation: Operation,
        admins: frozenset[str],
        subscription: str = "",
    ) -> bool:
        """Return True if a session may perform an operation, without reading the store.

        The caller passes the tenant's admins.
        """
        return self._allows_with(session, admins, self._granted(subject, operation, subscription))

    async def lacks_prefix(
        self, session: Session, topic: TopicName, subscription: str
    ) -> str | None:
        """Return the role with which a subscription's name must begin, but does not.

        Return None if the refusal has another reason.

        Raises:
            StoreError: The store failed.
        """
        admins, settings = await self.admins(topic.namespace.tenant), self._settings()
        grants = self._grants(topic.namespace)
        for one in all_checked(session):
            roles = roles_of(one, settings)
            if is_superuser_alone(one, settings) or not admins.isdisjoint(roles):
                continue
            if grants.keeps_from(one.role, subscription):
                return None
            if roles and all(grants.lacks_prefix(role, subscription) for role in roles):
                return one.role
        return None

    # -- the rules ----------------------------------------------------------------------------

    def _surely(self, session: Session, tenant: str, granted: Granted) -> bool:
        settings = self._settings()
        return is_believed(session, settings) and all(
            is_superuser_alone(one, settings)
            or self._tenants.surely(tenant, roles_of(one, settings))
            or any(map(granted, roles_of(one, settings)))
            for one in all_checked(session)
        )

    async def _allows(self, session: Session, tenant: str, granted: Granted) -> bool:
        if self._surely(session, tenant, granted):
            return True
        if not self.is_believed(session):
            return False
        return self._allows_with(session, await self._tenants.read(tenant), granted)

    def _allows_with(self, session: Session, admins: frozenset[str], granted: Granted) -> bool:
        settings = self._settings()
        return is_believed(session, settings) and all(
            is_superuser_alone(one, settings)
            or not admins.isdisjoint(roles_of(one, settings))
            or any(map(granted, roles_of(one, settings)))
            for one in all_checked(session)
        )

    def _granted(self, subject: Named, operation: Operation, subscription: str = "") -> Granted:
        namespace = namespace_named(subject)

        def granted(role: str) -> bool:
            grants, wildcards = self._grants(namespace), self._settings().wildcards
            if isinstance(subject, NamespaceName):
                return namespace_allows(grants, role, operation, wildcards=wildcards)
            return topic_allows(grants, role, operation, subject, subscription, wildcards=wildcards)

        return granted

    def _grants(self, namespace: NamespaceName) -> Grants:
        """Return a namespace's grants, which are parsed again only after its policies change.

        A changed namespace has a new policies document, because documents are immutable.
        """
        document = self._policies.document(namespace)
        if not document:
            self._read.pop(namespace, None)
            return NO_GRANTS
        kept = self._read.get(namespace)
        if kept is None or kept[0] is not document:
            if len(self._read) > len(self._policies):
                self._read.clear()  # Some of the namespaces are deleted.
            kept = self._read[namespace] = (document, read_grants(document))
        return kept[1]


def _not_granted(_: str) -> bool:
    return False


def namespace_named(subject: Named) -> NamespaceName:
    """Return the given namespace, or the namespace of the given topic."""
    return subject if isinstance(subject, NamespaceName) else subject.namespace

"""Authorization of requests to the admin REST API.

Each endpoint declares the permission that it needs; the request's path names the tenant, namespace,
topic or subscription. Status codes and error texts of refusals are a real broker's: 401 for
operations on topics and tenants, 403 for namespaces and policies.

Source: upstream PulsarWebResource.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from broker.admin.requests import namespace_name, segment, tenant_name, topic_name
from broker.admin.resources.schemas import schema_topic
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
from broker.authorization.service import namespace_named
from broker.authorization.tenant_admins import TenantMissingError
from broker.stores.changes import StoreError
from server.authentication.requests import REQUIRED, SUPERUSER_NEEDED, session_of_request
from server.http import RestError
from server.logs import shown_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from broker.authorization.operations import Needs
    from broker.authorization.service import AuthorizationService
    from proto.names import TopicName
    from server.authentication.peers import Session

ADMIN_NEEDED = "Don't have permission to administrate resources on this tenant"
NO_TENANT = "Tenant does not exist"
INVALID_PAIR = (
    "Invalid combination of Original principal cannot be empty if the request is via proxy."
)
_REFUSED = (401, 403)
_IN_TENANT = (
    TenantOperation.LIST_NAMESPACES,
    TenantOperation.CREATE_NAMESPACE,
    TenantOperation.DELETE_NAMESPACE,
)
_OF_ALL_TOPICS = (NamespaceOperation.CLEAR_BACKLOG, NamespaceOperation.UNSUBSCRIBE)
_OF_ALL = (TopicOperation.EXPIRE_MESSAGES,)
"""Operations on a topic's subscriptions: on all of them if the request names none."""


class RequestAuthorization:
    """Checks whether a client's session is allowed to send an admin request.

    Args:
        service: Decides whether a session may perform an operation.
        broker_id: Returns this broker's name, for error texts.
        guards_subscriptions: True if the exclusive roles of a subscription also guard it against
            requests that change many subscriptions together; False in profile pulsar, as recorded.
    """

    def __init__(
        self,
        service: AuthorizationService,
        broker_id: Callable[[], str],
        *,
        guards_subscriptions: bool = False,
    ) -> None:
        self._service = service
        self._guards_subscriptions = guards_subscriptions
        self._broker_id = broker_id

    async def check(self, needs: Needs, request: web.Request) -> None:
        """Refuse an admin request that the client's session is not allowed to send.

        Raises:
            RestError: The request is not allowed, its path has an invalid name, or the store
                failed.
        """
        session = session_of_request(request)
        if session is None:
            raise RestError(401, REQUIRED)
        try:
            await self._check(needs, session, request)
        except TenantMissingError:
            raise RestError(404, NO_TENANT) from None
        except StoreError as error:
            raise RestError(500, str(error)) from None
        except RestError as error:
            if error.status in _REFUSED:
                self._service.refuses(session, needs, shown_path(request.path))
            raise

    async def _check(self, needs: Needs, session: Session, request: web.Request) -> None:
        if isinstance(needs, Level):
            await self._check_level(needs, session, request)
        elif isinstance(needs, BrokerOperation | ClusterOperation | ClusterPolicyOperation):
            self._check_superuser(needs, session, request)
        elif isinstance(needs, TenantOperation):
            await self._check_tenant(needs, session, request)
        elif isinstance(needs, NamespaceOperation | TopicOperation):
            await self._check_subject(needs, session, request)
        elif isinstance(needs, PolicyName):
            await self._check_policy(needs, session, request)
        else:
            assert_never(needs)

    async def _check_level(self, needs: Level, session: Session, request: web.Request) -> None:
        if needs is Level.SUPERUSER and not self._service.is_superuser(session):
            raise RestError(401, self._no_superuser(session))
        if needs is Level.TENANT_ADMIN and not await self._service.administers(
            session, tenant_name(request)
        ):
            raise RestError(401, self._no_admin(session))

    def _no_superuser(self, session: Session) -> str:
        proxy, original = session.principal, session.original
        if not self._service.is_believed(session):
            return INVALID_PAIR
        if original is None or original.role == proxy.role:
            return SUPERUSER_NEEDED
        if not self._service.is_superuser_alone(proxy):
            return f"Proxy not authorized for super-user operation (proxy:{proxy.role})"
        return (
            f"Original principal not authorized for super-user operation (original:{original.role})"
        )

    def _no_admin(self, session: Session) -> str:
        proxy, original = session.principal, session.original
        if not self._service.is_believed(session):
            return INVALID_PAIR
        if original is None or original.role == proxy.role:
            return ADMIN_NEEDED
        names = f"(proxy:{proxy.role},original:{original.role})"
        return f"Proxy not authorized to access resource {names}"

    def _check_superuser(
        self,
        needs: BrokerOperation | ClusterOperation | ClusterPolicyOperation,
        session: Session,
        request: web.Request,
    ) -> None:
        if self._service.is_superuser(session):
            return
        if isinstance(needs, BrokerOperation):
            kind, subject = "Broker", f"broker [{self._broker_id()}]"
        else:
            kind = "Cluster" if isinstance(needs, ClusterOperation) else "ClusterPolicy"
            subject = f"cluster [{segment(request, 'cluster')}]"
        check = f"validateBothSuperuserAnd{kind}Operation"
        raise RestError(401, f"{_unauthorized(check, session)} [{needs.name}] on {subject}")

    async def _check_tenant(
        self, needs: TenantOperation, session: Session, request: web.Request
    ) -> None:
        if needs in _IN_TENANT:
            tenant = tenant_name(request)
            if not await self._service.allows_tenant(session, tenant):
                start = _unauthorized("validateTenantOperation", session)
                raise RestError(401, f"{start} [{needs.name}] on tenant [{tenant}]")
        elif not await self._may_change_tenant(needs, session, request):
            start = _unauthorized("validateBothTenantOperationAndSuperUser", session)
            raise RestError(401, f"{start} [{needs.name}]")

    async def _may_change_tenant(
        self, needs: TenantOperation, session: Session, request: web.Request
    ) -> bool:
        if needs is TenantOperation.LIST_TENANTS:
            return self._service.is_superuser(session)
        try:
            return await self._service.allows_tenant(session, tenant_name(request))
        except TenantMissingError:
            return False  # Only superusers learn that the tenant is missing.

    async def _check_subject(
        self, needs: NamespaceOperation | TopicOperation, session: Session, request: web.Request
    ) -> None:
        of_topic = isinstance(needs, TopicOperation)
        subject = _topic(request) if of_topic else namespace_name(request)
        subscription = _subscription(request)
        allowed = await self._service.allows(session, subject, needs, subscription)
        of_several = needs in _OF_ALL_TOPICS or (needs in _OF_ALL and not subscription)
        if allowed and self._guards_subscriptions and of_several:
            namespace = namespace_named(subject)
            allowed = await self._service.reaches(session, namespace, subscription)
        if not allowed:
            kind, status = ("Topic", 401) if of_topic else ("Namespace", 403)
            raise RestError(
                status,
                f"Unauthorized to validate{kind}Operation for operation [{needs.name}] "
                f"on {kind.lower()} [{subject}]",
            )

    async def _check_policy(
        self, needs: PolicyName, session: Session, request: web.Request
    ) -> None:
        of_topic = "topic" in request.match_info
        subject = _topic(request) if of_topic else namespace_name(request)
        if await self._service.allows_tenant(session, tenant_name(request)):
            return
        kind = "Topic" if of_topic else "Namespace"
        operation = "READ" if request.method in ("GET", "HEAD") else "WRITE"
        raise RestError(
            403,
            f"Unauthorized to validate{kind}PolicyOperation for operation [{operation}] "
            f"on {kind.lower()} [{subject}] on policy [{needs.name}]",
        )


def _unauthorized(check: str, session: Session) -> str:
    original = "null" if session.original is None else session.original.role
    return (
        f"Unauthorized to {check} for originalPrincipal [{original}] and "
        f"clientAppId [{session.principal.role}] about operation"
    )


def _subscription(request: web.Request) -> str:
    """Return the subscription in the request's path, or "" if the path names none."""
    names = ("subName", "subscription")
    return next((segment(request, name) for name in names if name in request.match_info), "")


def _topic(request: web.Request) -> TopicName:
    """Return the topic in the request's path; paths about schemas leave out the domain."""
    return topic_name(request) if "domain" in request.match_info else schema_topic(request)

"""Authorization of binary protocol commands; refusals have a real broker's error texts."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.authorization.operations import NamespaceOperation, TopicOperation
from broker.authorization.service import namespace_named
from broker.authorization.tenant_admins import TenantMissingError
from broker.stores.changes import StoreError
from proto.names import NamespaceName, TopicName
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from broker.authorization.revocation import Revocation
    from broker.authorization.service import AuthorizationService
    from server.authentication.peers import Session

_NOT_FOUND = "org.apache.pulsar.common.util.RestException: HTTP 404 Not Found"
_EXCEPTION = "Exception occurred while trying to"


@dataclass(frozen=True, slots=True)
class _Words:
    """The parts of the error text for a command that is not authorized.

    Attributes:
        refused: The end of the error text: the refused action.
        no_tenant: The whole error text for a missing tenant, as recorded.
        who: The beginning of the error text, as recorded.
    """

    refused: str
    no_tenant: str
    who: str = "Client"


class Asked(Enum):
    """A command to authorize: the operation it needs, and the error text of its refusal."""

    LOOKUP = (TopicOperation.LOOKUP, _Words("Lookup", f"{_EXCEPTION} authorize lookup"))
    PARTITIONS = (TopicOperation.LOOKUP, _Words("Get Partition Metadata", ""))
    PRODUCE = (TopicOperation.PRODUCE, _Words("Produce", _NOT_FOUND))
    BEGIN = (TopicOperation.SUBSCRIBE, _Words("Produce", _NOT_FOUND))
    """Creating the initial subscription that a new producer requests."""
    SUBSCRIBE = (TopicOperation.SUBSCRIBE, _Words("subscribe", _NOT_FOUND))
    GET_SCHEMA = (TopicOperation.GET_METADATA, _Words("get schemas", ""))
    MAKE_SCHEMA = (TopicOperation.PRODUCE, _Words("make schemas", ""))
    LIST = (
        NamespaceOperation.GET_TOPICS,
        _Words("GetTopicsOfNamespace", f"{_EXCEPTION} authorize GetTopicsOfNamespace"),
    )
    WATCH = (
        NamespaceOperation.GET_TOPICS,
        _Words("watchTopicList", f"{_EXCEPTION} handle command WatchTopicList", who="Proxy Client"),
    )


_OF_SCHEMAS = (Asked.GET_SCHEMA, Asked.MAKE_SCHEMA)


class CommandAuthorization:
    """Checks whether a client's session is allowed to send a command.

    Args:
        service: Decides whether a session may perform an operation.
        revocation: Closes producers and consumers whose permission was revoked.
        pulsar_compatible: True in profile pulsar, in which refusals for a missing tenant have
            separate error texts, and commands about schemas are always allowed (recorded).
    """

    def __init__(
        self, service: AuthorizationService, revocation: Revocation, *, pulsar_compatible: bool
    ) -> None:
        self.service = service
        self._revocation = revocation
        self._pulsar_compatible = pulsar_compatible

    @asynccontextmanager
    async def opening(
        self, session: Session | None, topic: TopicName, asked: Asked, subscription: str = ""
    ) -> AsyncIterator[None]:
        """Check that a session may open a producer or consumer, before the ``with`` block opens it.

        If a grant is revoked during the block, the new producer or consumer is checked again.

        Raises:
            RequestError: The session is not allowed.
        """
        before = self._revocation.changes
        await self.check(session, topic, asked, subscription)
        try:
            yield
        finally:
            if self._revocation.changes != before:
                self._revocation.look_at(topic.namespace)

    def lists_surely(self, session: Session | None, namespace: NamespaceName) -> bool:
        """Decide from memory alone whether a session is certainly allowed to list a namespace.

        False means that only the store can tell.
        """
        operation = NamespaceOperation.GET_TOPICS
        return session is not None and self.service.surely_allows(session, namespace, operation)

    async def check(
        self,
        session: Session | None,
        subject: NamespaceName | TopicName,
        asked: Asked,
        subscription: str = "",
    ) -> None:
        """Refuse a command about a namespace or topic if the session is not allowed to send it.

        Raises:
            RequestError: The session is not allowed, or the store failed.
        """
        if self._pulsar_compatible and asked in _OF_SCHEMAS:
            return
        try:
            refused = await self._refusal(session, subject, asked, subscription)
        except TenantMissingError:
            refused = self._no_tenant(asked, namespace_named(subject))
        except StoreError as error:
            raise RequestError(pb.MetadataError, str(error)) from None
        if refused is not None:
            self.service.refuses(session, asked.value[0], str(subject))
            raise refused

    async def _refusal(
        self,
        session: Session | None,
        subject: NamespaceName | TopicName,
        asked: Asked,
        subscription: str,
    ) -> RequestError | None:
        operation, _ = asked.value
        if session is not None:
            if await self.service.allows(session, subject, operation, subscription):
                return None
            if asked is Asked.SUBSCRIBE and isinstance(subject, TopicName):
                role = await self.service.lacks_prefix(session, subject, subscription)
                if role is not None:
                    return self._without_prefix(role, subject)
        if isinstance(subject, NamespaceName) and str(subject).endswith("/"):
            return self._no_tenant(asked, subject)  # Its policies are unreadable (recorded).
        return self._refused(asked)

    def _without_prefix(self, role: str, topic: TopicName) -> RequestError:
        text = (
            "Failed to create consumer - The subscription name needs to be prefixed by the "
            f"authentication role, like {role}-xxxx for topic: {topic}"
        )
        java_class = "org.apache.pulsar.broker.PulsarServerException: "
        prefix = java_class if self._pulsar_compatible else ""
        return RequestError(pb.AuthorizationError, prefix + text)

    def _refused(self, asked: Asked) -> RequestError:
        words = asked.value[1]
        who = words.who if self._pulsar_compatible else "Client"
        return RequestError(pb.AuthorizationError, f"{who} is not authorized to {words.refused}")

    def _no_tenant(self, asked: Asked, namespace: NamespaceName) -> RequestError:
        if not self._pulsar_compatible:
            return self._refused(asked)  # A refusal reveals nothing of the tenant.
        if asked is Asked.PARTITIONS:
            text = f"Tenant or namespace or topic does not exist: {namespace}"
            return RequestError(pb.TopicNotFound, text)
        return RequestError(pb.AuthorizationError, asked.value[1].no_tenant)

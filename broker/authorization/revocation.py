"""Revocation: closes producers, consumers and watches of roles that have lost a grant.

It is triggered by changes of a namespace's policies, as on a real broker, and by changes of
superusers. On a real broker and in profile pulsar watches continue, because the protocol cannot end
a watch. Profile floodgate closes the watch's connection.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple, Protocol

from broker.authorization.operations import NamespaceOperation, TopicOperation
from broker.stores.changes import StoreError
from limiter.clock import clock_sleep
from limiter.tasks import ended
from proto.names import NamespaceName, TopicName

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from broker.authorization.service import AuthorizationService
    from limiter.clock import Clock
    from server.authentication.peers import Session

logger = logging.getLogger(__name__)

AT_ONCE = 200
"""The number of producers and consumers checked in one event-loop turn."""
TRIED_AGAIN_SECONDS = 1.0
"""The delay before a failed check of a namespace is retried."""


class Use(NamedTuple):
    """A producer, consumer or watch that needs a grant on a topic or namespace.

    Attributes:
        of: The topic; for a watch the namespace.
        subscription: The consumer's subscription; None for producers and watches.
        close: Closes the producer, consumer or watch, and notifies the client.
    """

    of: TopicName | NamespaceName
    subscription: str | None
    close: Callable[[], object]

    @property
    def namespace(self) -> NamespaceName:
        """The namespace whose policies must contain the required grant."""
        return self.of if isinstance(self.of, NamespaceName) else self.of.namespace


class User(Protocol):
    """The interface (typing Protocol) of a connection that revocation checks."""

    @property
    def session(self) -> Session | None:
        """The session of the connected client."""

    def uses(self) -> Iterator[Use]:
        """Yield the connection's producers, consumers and watches."""


class Revocation:
    """Closes producers, consumers and watches after their grant is revoked.

    Bound: each namespace waits for one check, however often its policies change.

    Attributes:
        changes: The number of changes of policies so far.
    """

    def __init__(
        self, service: AuthorizationService, users: Collection[User], clock: Clock
    ) -> None:
        self._service = service
        self._users = users
        self._clock = clock
        self.changes = 0
        self._waiting: dict[NamespaceName, None] = {}
        self._looking: asyncio.Task[None] | None = None

    def policies_changed(self, changed: NamespaceName | TopicName | None) -> None:
        """Schedule a check of a namespace whose policies, and so perhaps grants, have changed.

        Grants on topics are part of the namespace's policies: a changed topic is ignored.
        """
        if isinstance(changed, NamespaceName):
            self.changes += 1
            self.look_at(changed)

    def look_at_all(self) -> None:
        """Schedule a check of all namespaces in use, because superusers or admins have changed."""
        self.changes += 1
        for user in self._users:
            for use in user.uses():
                self.look_at(use.namespace)

    def look_at(self, namespace: NamespaceName) -> None:
        """Schedule a check that a namespace's producers, consumers and watches are allowed."""
        self._waiting[namespace] = None
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def close(self) -> None:
        """Stop the scheduled checks."""
        await ended(self._looking)

    async def _look(self) -> None:
        while self._waiting:
            namespace = next(iter(self._waiting))
            del self._waiting[namespace]
            try:
                await self._close_in(namespace, await self._service.admins(namespace.tenant))
            except StoreError as error:
                logger.warning("revoked grants in %s are not checked yet: %s", namespace, error)
            except Exception:  # Any failure is retried: a revoked role must not keep access.
                logger.exception("revoked grants in %s are not checked yet", namespace)
            else:
                continue
            self._waiting[namespace] = None
            await clock_sleep(self._clock, TRIED_AGAIN_SECONDS)
        self._looking = None

    async def _close_in(self, namespace: NamespaceName, admins: frozenset[str]) -> None:
        looked = 0
        for user in tuple(self._users):
            looked += 1
            for use in tuple(user.uses()):
                if use.namespace == namespace:
                    looked += 1
                    if not self._is_allowed(user.session, use, admins):
                        _end(use, user.session)
            if looked >= AT_ONCE:
                looked = 0
                await asyncio.sleep(0)

    def _is_allowed(self, session: Session | None, use: Use, admins: frozenset[str]) -> bool:
        if session is None:
            return False
        operation: NamespaceOperation | TopicOperation = TopicOperation.SUBSCRIBE
        if isinstance(use.of, NamespaceName):
            operation = NamespaceOperation.GET_TOPICS
        elif use.subscription is None:
            operation = TopicOperation.PRODUCE
        return self._service.allows_now(session, use.of, operation, admins, use.subscription or "")


def _end(use: Use, session: Session | None) -> None:
    """Close a producer, consumer or watch that is no longer allowed; a failure is logged."""
    role = session.principal.role if session is not None else ""
    logger.info("%.100s is not allowed %s any more", role, use.of)
    try:
        use.close()
    except Exception:
        logger.exception("closing after a revocation failed")

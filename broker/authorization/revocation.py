"""The end of what was allowed: producers and consumers of a role that lost its grant are closed.

It happens when policies of a namespace change, as on a real broker, and when superusers do. Watches
go on there, and in profile pulsar: the protocol has no command that ends one. Otherwise their
connection is closed.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple, Protocol

from broker.authorization.operations import TopicOperation
from broker.stores.changes import StoreError
from limiter.clock import clock_sleep
from proto.names import NamespaceName, TopicName

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from broker.authorization.service import AuthorizationService
    from limiter.clock import Clock
    from server.authentication.peers import Session

logger = logging.getLogger(__name__)

AT_ONCE = 200
"""Producers and consumers that are looked at in one turn."""
TRIED_AGAIN_SECONDS = 1.0
"""The time until a namespace is looked at again that could not be."""


class Use(NamedTuple):
    """A producer, a consumer or a watch.

    Attributes:
        of: Of which topic; a watch is of a namespace.
        subscription: A consumer's; None for others.
        close: Ends it, and tells its client.
    """

    of: TopicName | NamespaceName
    subscription: str | None
    close: Callable[[], object]

    @property
    def namespace(self) -> NamespaceName:
        """The namespace whose grants it needs."""
        return self.of if isinstance(self.of, NamespaceName) else self.of.namespace


class User(Protocol):
    """A connection, as far as it uses topics."""

    @property
    def session(self) -> Session | None:
        """The session of its peer."""

    def uses(self) -> Iterator[Use]:
        """Yield its producers, consumers and watches."""


class Revocation:
    """Closes what is allowed no more.

    Bound: each namespace waits once, however often its policies change.

    Args:
        service: Knows what is allowed.
        users: The connections.
        clock: The time.

    Attributes:
        changes: Changes of policies so far.
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
        """Look at a namespace again; grants on topics are kept there too."""
        if isinstance(changed, NamespaceName):
            self.changes += 1
            self.look_at(changed)

    def look_at_all(self) -> None:
        """Close what is allowed no more anywhere, soon: superusers or admins have changed."""
        self.changes += 1
        for user in self._users:
            for use in user.uses():
                self.look_at(use.namespace)

    def look_at(self, namespace: NamespaceName) -> None:
        """Close what is allowed no more in a namespace, soon."""
        self._waiting[namespace] = None
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def close(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    async def _look(self) -> None:
        while self._waiting:
            namespace = next(iter(self._waiting))
            del self._waiting[namespace]
            try:
                await self._close_in(namespace, await self._service.admins(namespace.tenant))
            except StoreError as error:
                logger.warning("who lost a grant in %s is not known yet: %s", namespace, error)
            except Exception:  # Whatever it is: who lost a grant must not keep what it allowed.
                logger.exception("who lost a grant in %s is not known yet", namespace)
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
        if isinstance(use.of, NamespaceName):
            return self._service.lists_now(session, use.of, admins)
        operation = TopicOperation.PRODUCE if use.subscription is None else TopicOperation.SUBSCRIBE
        return self._service.allows_topic_now(
            session, use.of, operation, admins, use.subscription or ""
        )


def _end(use: Use, session: Session | None) -> None:
    """Close a producer or consumer; one that cannot be closed holds up no other."""
    role = session.principal.role if session is not None else ""
    logger.info("%.100s is not allowed %s any more", role, use.of)
    try:
        use.close()
    except Exception:
        logger.exception("what is not allowed any more does not end")

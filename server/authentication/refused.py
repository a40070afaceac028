"""Counts and log lines of operations that authorization refused; at most one line a second."""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import TYPE_CHECKING

from proto.excerpts import quoted

if TYPE_CHECKING:
    from limiter.clock import Clock
    from server.authentication.peers import Session

logger = logging.getLogger(__name__)

TOLD_SECONDS = 1.0
"""The least time between two lines at level info, so that repeated requests fill no disk."""


class Subject(StrEnum):
    """The kind of object that a refused operation concerned, as a label value of the metric."""

    BROKER = "broker"
    CLUSTER = "cluster"
    TENANT = "tenant"
    NAMESPACE = "namespace"
    TOPIC = "topic"
    POLICY = "policy"
    ROUTE = "route"
    """A path restricted to superusers, or to admins of a tenant."""


class RefusedOperations:
    """Counts and logs operations that authorization refused, by the kind of their object."""

    def __init__(self, clock: Clock) -> None:
        self.counts = dict.fromkeys(Subject, 0)
        self._clock = clock
        self._told_at: float | None = None
        self._untold = 0

    def add(self, session: Session | None, subject: Subject, operation: str, name: str) -> None:
        """Count a refused operation, and log it unless a line was logged within the last second.

        Args:
            session: The refused session.
            subject: The kind of the operation's object.
            operation: Upstream's name of the operation.
            name: The name of the object.
        """
        self.counts[subject] += 1
        now, untold = self._clock.now(), self._untold
        if self._told_at is None or now - self._told_at >= TOLD_SECONDS:
            self._told_at, self._untold, level = now, 0, logging.INFO
        else:
            self._untold, level = untold + 1, logging.DEBUG
        if logger.isEnabledFor(level):
            more = f"; {untold} more were refused before" if untold and not self._untold else ""
            what = f"{operation} of {subject.value} {quoted(name)}"
            logger.log(level, "refused: %s may not %s%s", shown_session(session), what, more)


def shown_session(session: Session | None, nobody: str = "nobody") -> str:
    """Return the role of a peer, and of any client behind it, as text for log lines."""
    if session is None:
        return nobody
    role = quoted(session.principal.role)
    return role if session.original is None else f"{role} for {quoted(session.original.role)}"

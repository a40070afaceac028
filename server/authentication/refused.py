"""Counts who was refused for want of a right, and tells of it in the log, at most once a second."""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from proto.excerpts import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from limiter.clock import Clock
    from server.authentication.peers import Session

logger = logging.getLogger(__name__)

TOLD_SECONDS = 1.0
"""The least time between two lines at level info: who asks again and again fills no disk."""


class Subject(StrEnum):
    """Something that an operation is done to; the value is the metric's label."""

    BROKER = "broker"
    CLUSTER = "cluster"
    TENANT = "tenant"
    NAMESPACE = "namespace"
    TOPIC = "topic"
    POLICY = "policy"
    ROUTE = "route"
    """A path that only superusers, or only admins of a tenant, may ask for."""


class RefusedOperations:
    """The number of refusals by subject, and their lines in the log.

    Args:
        clock: The time.
    """

    def __init__(self, clock: Clock) -> None:
        self.counts = dict.fromkeys(Subject, 0)
        self._clock = clock
        self._told_at: float | None = None
        self._untold = 0

    def add(self, session: Session | None, subject: Subject, operation: str, name: str) -> None:
        """Count a refusal.

        Args:
            session: Who was refused.
            subject: The kind of what it was about.
            operation: The operation by upstream's name.
            name: The name of what it was about.
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
    """Return the role of a session, and of whom it speaks for, as lines of the log have it."""
    if session is None:
        return nobody
    role = quoted(session.principal.role)
    return role if session.original is None else f"{role} for {quoted(session.original.role)}"


class RefusedMetrics(Collector):
    """The metric of refusals."""

    def __init__(self, cluster: str, refused: RefusedOperations) -> None:
        self._cluster = cluster
        self._refused = refused

    def collect(self) -> Iterator[Metric]:
        """Return one family, a sample a subject."""
        family = CounterMetricFamily(
            "floodgate_authorization_refusals",
            "Unauthorized commands and requests, by subject",
            labels=["cluster", "of"],
        )
        for subject, count in self._refused.counts.items():
            family.add_metric([self._cluster, subject.value], count)
        yield family

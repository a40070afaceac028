"""The names that one watcher knows: those it began with, and every update since.

Plain values: no sockets and no clock. Watchers that began with the same names share them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proto.topic_hash import topics_hash

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loadgen.scenarios.watch_churn.scenario import Change

_PROBLEMS_KEPT = 100


class WatchedNames:
    """The changes a watcher was told; mutable state: names that came and went, when, and faults.

    Args:
        begun_with: Names of the watch's first answer.
        said_hash: The hash in it.
    """

    def __init__(self, begun_with: frozenset[str], said_hash: str) -> None:
        self._begun_with = begun_with
        self._came: set[str] = set()
        self._went: set[str] = set()
        self._said_hash = said_hash
        self.told_seconds: dict[tuple[str, bool], float] = {}
        """Seconds at which it was first told of a change: by topic, and if that was created."""
        self.updates = 0
        self.doubled = 0
        self.problems: list[str] = []
        """The first updates that cannot be right, a sentence each."""

    def update(
        self, new: Iterable[str], deleted: Iterable[str], said_hash: str, at_seconds: float
    ) -> None:
        """Take one update: names that are gone, then new ones, as clients do."""
        self.updates += 1
        self._said_hash = said_hash
        for topic in deleted:
            self._take(topic, at_seconds, created=False)
        for topic in new:
            self._take(topic, at_seconds, created=True)

    def _take(self, topic: str, at_seconds: float, *, created: bool) -> None:
        known = (topic in self._begun_with and topic not in self._went) or topic in self._came
        again = (topic, created) in self.told_seconds
        self.told_seconds.setdefault((topic, created), at_seconds)
        if known is created:
            self.doubled += again
            self._problem(topic, created=created, again=again)
            return
        into, out_of = (self._came, self._went) if created else (self._went, self._came)
        # A name that comes back is as it was.
        if topic in out_of:
            out_of.remove(topic)
        else:
            into.add(topic)

    def _problem(self, topic: str, *, created: bool, again: bool) -> None:
        done, why = ("created", "it had") if created else ("deleted", "it did not have")
        words = f"told again that {topic} was {done}"
        if not again:
            words = f"told that {topic} was {done}, which {why}"
        if len(self.problems) < _PROBLEMS_KEPT:
            self.problems.append(f"was {words}")

    def was_told(self, change: Change) -> bool:
        """Tell whether a change has arrived."""
        return (change.topic, change.created) in self.told_seconds

    @property
    def names(self) -> frozenset[str]:
        """All names that it knows now."""
        return (self._begun_with - self._went) | self._came

    def judge_end(self, listed: frozenset[str], listed_hash: str) -> str | None:
        """Return what is wrong with its names once all changes are over; None if nothing is."""
        names = self.names
        if names != listed:
            missing, left = len(listed - names), len(names - listed)
            return (
                f"knows {len(names)} names at the end (hash {topics_hash(names)}), a listing has "
                f"{len(listed)} (hash {listed_hash}): {missing} are missing, {left} are gone"
            )
        if self._said_hash != listed_hash:
            return f"was told hash {self._said_hash} last, its names have {listed_hash}"
        return None

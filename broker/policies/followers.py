"""Topics that apply changed policies, a batch in each turn of the event loop."""

from __future__ import annotations

import asyncio
import logging
from itertools import islice
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

logger = logging.getLogger(__name__)

AT_ONCE = 50
"""Topics of a batch."""


class Follower(Protocol):
    """A topic that applies policies."""

    closing: bool

    def policies_changed(self) -> None:
        """Apply the effective policies."""


class PolicyFollowers:
    """Topics yet to apply changed policies; a namespace may have 10,000.

    Bound: one entry a loaded topic, however often policies change.
    """

    def __init__(self) -> None:
        self._waiting: dict[Follower, None] = {}
        self._following: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def follow(self, topics: Sequence[Follower]) -> None:
        """Notify topics of changed policies: the first batch now, the rest in the next turns."""
        for topic in topics[:AT_ONCE]:
            _follow_one(topic)
        self._waiting.update(dict.fromkeys(topics[AT_ONCE:]))
        if self._waiting and self._following is None:
            self._following = asyncio.get_running_loop().create_task(self._follow_waiting())

    async def _follow_waiting(self) -> None:
        while self._waiting:
            await asyncio.sleep(0)
            for topic in list(islice(self._waiting, AT_ONCE)):
                del self._waiting[topic]
                _follow_one(topic)
        self._following = None


def _follow_one(topic: Follower) -> None:
    """Notify a topic; a failure, as of its store, does not delay the next topics."""
    if topic.closing:
        return
    try:
        topic.policies_changed()
    except Exception:
        logger.exception("a topic does not follow its policies")

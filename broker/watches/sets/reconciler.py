"""Updates for lagging watchers: all changes up to the newest version, in bounded parts.

Watchers missing the same changes (a large import) share one update, built once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.watches.names.merging import changes_between, merged
from broker.watches.sets.encoded_names import NAMES_A_PART
from broker.watches.update_permit import SetUpdate
from proto.watch_commands import NEW_TOPIC_TAG, TOPIC_TAG, encode_names
from server.tasks.cooperative import Steps

if TYPE_CHECKING:
    from collections.abc import Generator

    from broker.watches.names.sorted_names import NameChanges, SortedNames

REMEMBERED_UPDATES = 2
"""Cached updates of a set, for watchers missing the same changes."""


@dataclass(frozen=True, slots=True)
class _Known:
    told: SortedNames
    newest: SortedNames
    update: SetUpdate | None


class Reconciler:
    """Builds updates of one set for lagging watchers, in steps.

    Bound: two updates are cached, while any watcher lags.

    The mutable state is the updates, and the number of lagging watchers.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._steps = Steps()
        self._known: deque[_Known] = deque(maxlen=REMEMBERED_UPDATES)
        self._behind = 0

    def fell_behind(self) -> None:
        """Count one more lagging watcher."""
        self._behind += 1

    def caught_up(self) -> None:
        """Count one lagging watcher less; after the last, drop all updates."""
        self._behind -= 1
        if not self._behind:
            self._known.clear()

    async def update(
        self, told: SortedNames, newest: SortedNames, most_bytes: int
    ) -> SetUpdate | None:
        """Return the first update from one version to another; None for equal names.

        The update leads to the newest version unless the names would exceed ``most_bytes``.
        """
        async with self._lock:
            for known in self._known:
                if (known.told.identity, known.newest.identity) == (told.identity, newest.identity):
                    return known.update
            update = await self._made(told, newest, most_bytes)
            self._known.append(_Known(told, newest, update))
            return update

    async def _made(
        self, told: SortedNames, newest: SortedNames, most_bytes: int
    ) -> SetUpdate | None:
        changes, all_of_them = await self._steps.take(changes_between(told, newest, most_bytes))
        if not (changes.added or changes.removed):
            return None
        after = newest
        if not all_of_them:
            after = await self._steps.take(merged(told, changes.added, changes.removed))
        parts = await self._steps.take(_encoding(changes))
        return SetUpdate(told, after, b"", parts=parts)


def _encoding(changes: NameChanges) -> Generator[None, None, list[bytes]]:
    parts = []
    for names, tag in ((changes.added, NEW_TOPIC_TAG), (changes.removed, TOPIC_TAG)):
        for start in range(0, len(names), NAMES_A_PART):
            parts.append(encode_names(names[start : start + NAMES_A_PART], tag))
            yield
    return parts

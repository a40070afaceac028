"""Encoding of names for watchers: of whole sets, and of updates for watchers that missed changes.

Each version is encoded once for all recipients. Watchers missing the same changes (a large import)
share one update, of all changes up to the newest version in bounded parts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary, finalize

from broker.watches.names.merging import changes_between, merged
from broker.watches.update_permit import SetUpdate
from limiter.single_flight import SingleFlight
from proto.watch_commands import NEW_TOPIC_TAG, TOPIC_TAG, encode_names
from server.tasks.cooperative import Steps

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from broker.watches.names.sorted_names import NameChanges, SortedNames

NAMES_A_PART = 1_000
"""Names encoded in one step."""
PARTS_A_TURN = 40
"""Parts freed in an event-loop iteration: 4 MB. A gigabyte would block the loop for 90 ms."""


class EncodedNames:
    """A set's names in wire format, which all recipients share until the last one was sent them.

    Attributes:
        names: The encoded set.
        parts: The names in order, encoded by proto.watch_commands.encode_names.
    """

    __slots__ = ("__weakref__", "names", "parts")

    def __init__(self, names: SortedNames, parts: Sequence[bytes]) -> None:
        self.names = names
        self.parts = parts


class EncodedVersions:
    """Encodes the sets of a namespace, each version once for all its recipients.

    All concurrent recipients of a version share one copy, in all equal sets, even while the version
    is being encoded.

    Bound: only copies waiting to be sent are kept.
    """

    def __init__(self) -> None:
        # By identity: each entry keeps its version alive, so that the identity stays unique.
        self._known: WeakValueDictionary[int, EncodedNames] = WeakValueDictionary()
        self._under_way = SingleFlight[EncodedNames]()

    async def of(self, names: SortedNames) -> EncodedNames:
        """Return the names of a version in wire format; a long version is encoded in steps."""
        known = self._known.get(names.identity)
        if known is not None:
            return known
        if len(names) <= NAMES_A_PART:
            return self._kept(names, [encode_names(names.names(), TOPIC_TAG)])
        return await self._under_way.join(names.identity, partial(self._encode, names))

    async def _encode(self, names: SortedNames) -> EncodedNames:
        parts, batch = list[bytes](), list[bytes]()
        for leaf in names.leaves():
            batch += leaf
            if len(batch) >= NAMES_A_PART:
                parts.append(encode_names(batch, TOPIC_TAG))
                batch = []
                await asyncio.sleep(0)
        parts.append(encode_names(batch, TOPIC_TAG))
        return self._kept(names, parts)

    def _kept(self, names: SortedNames, parts: Sequence[bytes]) -> EncodedNames:
        encoded = self._known[names.identity] = EncodedNames(names, parts)
        if len(parts) > PARTS_A_TURN:
            finalize(encoded, _free, asyncio.get_running_loop(), [*parts]).atexit = False
        return encoded


def _free(loop: asyncio.AbstractEventLoop, parts: list[bytes]) -> None:
    del parts[-PARTS_A_TURN:]
    if parts and not loop.is_closed():
        loop.call_soon_threadsafe(_free, loop, parts)  # The last user may be in a thread.


REMEMBERED_UPDATES = 2
"""Most cached updates of a set, for watchers that missed the same changes."""


@dataclass(frozen=True, slots=True)
class _Known:
    told: SortedNames
    newest: SortedNames
    update: SetUpdate | None


class Reconciler:
    """Builds updates for those watchers of a set whose clients have an older version of it.

    Bound: two updates are cached, while any watcher lags.

    The mutable state is the updates, and the number of lagging watchers.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._steps = Steps()
        self._known: deque[_Known] = deque(maxlen=REMEMBERED_UPDATES)
        self._behind = 0

    def fell_behind(self) -> None:
        """Count one more watcher whose client has an older version."""
        self._behind += 1

    def caught_up(self) -> None:
        """Stop counting a watcher that has caught up; after the last one, drop cached updates."""
        self._behind -= 1
        if not self._behind:
            self._known.clear()

    async def update(
        self, told: SortedNames, newest: SortedNames, most_bytes: int
    ) -> SetUpdate | None:
        """Return an update that leads from one version of the set towards another.

        None if both versions have the same names.

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

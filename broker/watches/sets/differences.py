"""Effects of a change of some names on watched sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.watches.update_permit import SetUpdate
from proto.names import PERSISTENT, is_system_topic
from proto.watch_commands import encode_changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker.watches.names.sorted_names import SortedNames
    from broker.watches.sets.watched_sets import WatchedSet
    from broker.watches.update_permit import UpdatePermit

_PERSISTENT = f"{PERSISTENT}://".encode()


class SetDifferences:
    """Versions of sets before a change, and the names added to and removed from each."""

    def __init__(self) -> None:
        self._by_set: dict[WatchedSet, _Difference] = {}

    def note(
        self,
        name: bytes,
        sets: Sequence[WatchedSet],
        versions: Sequence[SortedNames],
        *,
        came: bool,
    ) -> None:
        """Record a name for the sets whose version has changed."""
        for watched, version in zip(sets, versions, strict=True):
            if watched.names is not version:
                known = self._by_set.get(watched)
                if known is None:
                    known = self._by_set[watched] = _Difference(version)
                (known.added if came else known.removed).append(name)

    def updates(self, permit: UpdatePermit) -> list[tuple[WatchedSet, SetUpdate]]:
        """Return an update for each watched set; equal names are encoded once."""
        updates = []
        encoded: dict[tuple[tuple[bytes, ...], tuple[bytes, ...]], bytes] = {}
        for watched, one in self._by_set.items():
            if watched.watchers:
                key = (tuple(one.added), tuple(one.removed))
                names = encoded.get(key)
                if names is None:
                    names = encoded[key] = encode_changes(one.added, one.removed)
                update = SetUpdate(one.before, watched.names, names, permit)
                updates.append((watched, update))
        return updates


class _Difference:
    """The difference of one set."""

    __slots__ = ("added", "before", "removed")

    def __init__(self, before: SortedNames) -> None:
        self.before = before
        self.added: list[bytes] = []
        self.removed: list[bytes] = []


def each_name(added: Iterable[bytes], removed: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield watchable names, each with whether added; removed names come first."""
    yield from ((name, False) for name in removed if _can_be_watched(name))
    yield from ((name, True) for name in added if _can_be_watched(name))


def _can_be_watched(name: bytes) -> bool:
    """Tell whether a name belongs to a persistent user topic."""
    return name.startswith(_PERSISTENT) and not is_system_topic(name.decode())

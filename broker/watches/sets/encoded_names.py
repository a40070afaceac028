"""Versions of watched sets in wire format, each encoded once for all recipients."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary, finalize

from limiter.single_flight import SingleFlight
from proto.watch_commands import TOPIC_TAG, encode_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.watches.names.sorted_names import SortedNames

NAMES_A_PART = 1_000
"""Names encoded in one step."""
PARTS_A_TURN = 40
"""Parts freed in an event-loop iteration: 4 MB. A gigabyte would block the loop for 90 ms."""


class EncodedNames:
    """A version of a set in wire format, alive while waiting to be sent.

    Attributes:
        names: The version.
        parts: The names in order, encoded by proto.watch_commands.encode_names.
    """

    __slots__ = ("__weakref__", "names", "parts")

    def __init__(self, names: SortedNames, parts: Sequence[bytes]) -> None:
        self.names = names
        self.parts = parts


class EncodedVersions:
    """Encodes the versions of a namespace's sets.

    All concurrent recipients of a version share one copy, in all equal sets, even while the version
    is being encoded.

    Bound: only copies waiting to be sent are kept.
    """

    def __init__(self) -> None:
        # By identity: each entry keeps its version alive, so that the identity stays unique.
        self._known: WeakValueDictionary[int, EncodedNames] = WeakValueDictionary()
        self._under_way = SingleFlight[EncodedNames]()

    async def of(self, names: SortedNames) -> EncodedNames:
        """Return a version in wire format; a long version is encoded in steps."""
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
    """Free unused parts, some in each event-loop iteration."""
    del parts[-PARTS_A_TURN:]
    if parts and not loop.is_closed():
        loop.call_soon_threadsafe(_free, loop, parts)  # The last user may be in a thread.

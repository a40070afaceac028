"""Versions of watched sets as they are sent, each encoded once for all who are sent it."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary, finalize

from proto.watch_commands import TOPIC_TAG, encode_names
from server.tasks.single_flight import SingleFlight

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.watches.names.sorted_names import SortedNames

NAMES_A_PART = 1_000
"""Names that are encoded in one step."""
PARTS_A_TURN = 40
"""Parts that are freed in a turn: 4 MB. A gigabyte at once would hold the loop for 90 ms."""


class EncodedNames:
    """A version of a set as it is sent; it lives for as long as it waits to be sent.

    Attributes:
        names: The version.
        parts: Its names in order, as proto.watch_commands.encode_names gives them.
    """

    __slots__ = ("__weakref__", "names", "parts")

    def __init__(self, names: SortedNames, parts: Sequence[bytes]) -> None:
        self.names = names
        self.parts = parts


class EncodedVersions:
    """Encodes the versions of a namespace's sets.

    All who are sent a version at a time share one copy, whichever of the sets that are equal they
    watch: also those who ask while it is being made.

    Bound: nothing is kept beyond what waits to be sent.
    """

    def __init__(self) -> None:
        # By identity: each keeps its version, so that no other can have that meanwhile.
        self._known: WeakValueDictionary[int, EncodedNames] = WeakValueDictionary()
        self._under_way = SingleFlight[EncodedNames]()

    async def of(self, names: SortedNames) -> EncodedNames:
        """Return a version as it is sent; a long one is encoded in steps."""
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
    """Free parts that nobody is sent any more, some in each turn."""
    del parts[-PARTS_A_TURN:]
    if parts and not loop.is_closed():
        loop.call_soon_threadsafe(_free, loop, parts)  # The last user may be in a thread.

"""Direct memory that is acquired before the answer is made that it pays for.

Only direct memory waits for peers. A request that waited for it with its answer made would hold
heap that others need; so it waits with nothing, and makes its answer afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


class DirectAhead:
    """Holds direct memory that was granted until an answer takes it.

    Args:
        pays_for: Says if it is enough for the bytes of a key, which are this size.
        release: Gives it back.
    """

    __slots__ = ("_pays_for", "_release")

    def __init__(
        self, pays_for: Callable[[Hashable, int], bool], release: Callable[[], object]
    ) -> None:
        self._pays_for = pays_for
        self._release: Callable[[], object] | None = release

    def pay(self, key: Hashable, size_bytes: int) -> Callable[[], object] | None:
        """Pay for an answer, if it is enough: return how that is given back, then the caller's."""
        if self._release is None or not self._pays_for(key, size_bytes):
            return None
        release, self._release = self._release, None
        return release

    def release(self) -> None:
        """Give back what did not pay for anything; once more is harmless."""
        release, self._release = self._release, None
        if release is not None:
            release()

"""Memory that was freed and that the C library keeps: given back when much of it stays unused.

After a burst of large buffers hundreds of megabytes may stay with the process, which a container
counts as its own.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from limiter.clock import Clock, TimerHandle

KEPT_BYTES = 16 * 1024 * 1024
"""So much may stay for what comes next."""
LOOK_SECONDS = 1.0
LOOKS = 5
"""Only what was free at so many looks is given back: while a thread does that (400 MB: some 40 ms)
nobody else allocates, so that it is worth nothing beside work that needs the memory again."""


class HeapSize(NamedTuple):
    """The C library's heap. What Python and Arrow map for themselves is not in it."""

    in_use_bytes: int
    free_bytes: int


class Heap(Protocol):
    """A heap that keeps what was freed."""

    def size(self) -> HeapSize:
        """Return its size; takes microseconds, or milliseconds when it is in very many pieces."""

    def trim(self) -> object:
        """Give back what is free."""


class _MallInfo(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


class GlibcHeap:
    """The heap of glibc.

    Raises:
        AttributeError: The C library is another one, or older than 2.33.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._info, self._trim = library.mallinfo2, library.malloc_trim
        self._info.restype = _MallInfo

    def size(self) -> HeapSize:
        """Return its size."""
        info = self._info()
        return HeapSize(info.uordblks + info.hblkhd, info.fordblks)

    def trim(self) -> object:
        """Give back all free pages."""
        return self._trim(0)


def c_heap() -> Heap | None:
    """Return the C library's heap; None if it does not tell."""
    try:
        return GlibcHeap()
    except AttributeError:
        return None


class FreedMemory:
    """Looks every second whether a heap keeps much, and trims what stays, in a thread.

    Attributes:
        trimming: The last trim, maybe under way.
    """

    def __init__(self, heap: Heap, clock: Clock) -> None:
        self._heap = heap
        self._clock = clock
        self._timer: TimerHandle | None = None
        self._free_bytes: deque[int] = deque(maxlen=LOOKS)
        self.trimming: asyncio.Future[object] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._timer = self._clock.call_at(self._clock.now() + LOOK_SECONDS, self._look)

    def stop(self) -> None:
        """Look no more. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self.start()
        self._free_bytes.append(self._heap.size().free_bytes)
        if len(self._free_bytes) == LOOKS and min(self._free_bytes) > KEPT_BYTES:
            self._free_bytes.clear()
            self.trimming = asyncio.get_running_loop().run_in_executor(None, self._heap.trim)

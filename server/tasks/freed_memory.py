"""Return of freed memory from the C library to the operating system, if much stays unused.

After a burst of large buffers the process may keep hundreds of megabytes, which count toward a
container's limit. Long lists are emptied in a thread: a million names would take the loop 50 ms.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from limiter.clock import Timer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limiter.clock import Clock

KEPT_BYTES = 16 * 1024 * 1024
"""Bytes that may be kept for reuse."""
LOOK_SECONDS = 1.0
LOOKS = 5
"""Samples in which memory must be free before trimming: a trim (400 MB: some 40 ms) blocks all
allocations, and is useless if the memory is needed again."""


class HeapSize(NamedTuple):
    """Bytes of the C library's heap, without memory that Python and Arrow map themselves."""

    in_use_bytes: int
    free_bytes: int


class Heap(Protocol):
    """An interface of a heap that keeps freed memory until it is trimmed."""

    def size(self) -> HeapSize:
        """Return the bytes of the heap that are in use, and those that are free.

        Takes microseconds, or milliseconds if the heap is very fragmented.
        """

    def trim(self) -> object:
        """Return the heap's free memory to the operating system."""


class _MallInfo(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


class GlibcHeap:
    """The heap of the C library glibc, version 2.33 or later.

    Raises:
        AttributeError: The C library is not glibc, or is older than 2.33.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._info, self._trim = library.mallinfo2, library.malloc_trim
        self._info.restype = _MallInfo

    def size(self) -> HeapSize:
        """Return the bytes of the heap that are in use, and those that are free."""
        info = self._info()
        return HeapSize(info.uordblks + info.hblkhd, info.fordblks)

    def trim(self) -> object:
        """Return all free pages of the heap to the operating system."""
        return self._trim(0)


def c_heap() -> Heap | None:
    """Return the heap of the C library; None if that library is not supported."""
    try:
        return GlibcHeap()
    except AttributeError:
        return None


class FreedMemory:
    """Samples a heap every second, and returns memory that stays free to the operating system.

    Attributes:
        trimming: The last trim, possibly in progress.
    """

    def __init__(self, heap: Heap, clock: Clock) -> None:
        self._heap = heap
        self._timer = Timer(clock)
        self._free_bytes: deque[int] = deque(maxlen=LOOKS)
        self.trimming: asyncio.Future[object] | None = None

    def start(self) -> None:
        """Start to sample the heap's size, every second."""
        self._timer.after(LOOK_SECONDS, self._look)

    def stop(self) -> None:
        """Stop sampling the heap; may be called repeatedly."""
        self._timer.stop()

    def _look(self) -> None:
        self.start()
        self._free_bytes.append(self._heap.size().free_bytes)
        if len(self._free_bytes) == LOOKS and min(self._free_bytes) > KEPT_BYTES:
            self._free_bytes.clear()
            self.trimming = asyncio.get_running_loop().run_in_executor(None, self._heap.trim)


FREED_AT_ONCE = 10_000
"""Objects freed in a step, which takes half a millisecond."""


async def free(values: Sequence[object]) -> None:
    """Empty a long list, no longer used, in a thread; do nothing with any other sequence."""
    if isinstance(values, list) and len(values) > FREED_AT_ONCE:
        await asyncio.to_thread(free_in_steps, values)


def free_in_steps(values: list[Any]) -> None:
    """Empty a list in steps between which other threads run."""
    while values:
        del values[-FREED_AT_ONCE:]

"""Memory that was freed and is kept."""

from __future__ import annotations

from server.tasks.freed_memory import KEPT_BYTES, LOOK_SECONDS, FreedMemory, HeapSize, c_heap
from tests.support.clocks.manual_clock import ManualClock


class _Heap:
    def __init__(self, free_bytes: int) -> None:
        self.free_bytes = free_bytes
        self.trims = 0

    def size(self) -> HeapSize:
        return HeapSize(1_000, self.free_bytes)

    def trim(self) -> None:
        self.trims += 1
        self.free_bytes = 0


async def test_much_that_was_freed_is_given_back_once() -> None:
    heap, clock = _Heap(KEPT_BYTES + 1), ManualClock()
    freed = FreedMemory(heap, clock)
    freed.start()
    clock.advance(LOOK_SECONDS)
    assert freed.trimming is not None
    await freed.trimming
    clock.advance(3 * LOOK_SECONDS)
    assert heap.trims == 1


async def test_a_little_stays_for_what_comes_next() -> None:
    heap, clock = _Heap(KEPT_BYTES), ManualClock()
    freed = FreedMemory(heap, clock)
    freed.start()
    clock.advance(3 * LOOK_SECONDS)
    assert freed.trimming is None


async def test_nobody_looks_after_the_stop() -> None:
    heap, clock = _Heap(KEPT_BYTES + 1), ManualClock()
    freed = FreedMemory(heap, clock)
    freed.start()
    freed.stop()
    freed.stop()
    clock.advance(3 * LOOK_SECONDS)
    assert freed.trimming is None


def test_the_heap_of_this_machine_tells_what_is_in_use() -> None:
    heap = c_heap()
    if heap is not None:  # a C library that does not tell is no error
        before = heap.size().in_use_bytes
        kept = bytearray(10_000_000)
        assert heap.size().in_use_bytes - before >= len(kept)
        heap.trim()

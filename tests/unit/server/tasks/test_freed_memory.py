"""Memory kept after being freed."""

from server.tasks.freed_memory import (
    KEPT_BYTES,
    LOOK_SECONDS,
    LOOKS,
    FreedMemory,
    HeapSize,
    c_heap,
)
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


def _look(clock: ManualClock, times: int = LOOKS) -> None:
    for _ in range(times):
        clock.advance(LOOK_SECONDS)


async def test_much_memory_that_stays_free_is_returned_to_the_system_once() -> None:
    heap, clock = _Heap(KEPT_BYTES + 1), ManualClock()
    freed = FreedMemory(heap, clock)
    freed.start()
    _look(clock)
    assert freed.trimming is not None
    await freed.trimming
    _look(clock, 3 * LOOKS)
    assert heap.trims == 1


async def test_memory_used_again_meanwhile_is_not_returned() -> None:
    heap, clock = _Heap(KEPT_BYTES + 1), ManualClock()
    freed = FreedMemory(heap, clock)
    freed.start()
    for _ in range(3):
        _look(clock, LOOKS - 1)
        heap.free_bytes = 0
        _look(clock, 1)
        heap.free_bytes = KEPT_BYTES + 1
    assert freed.trimming is None


async def test_a_small_amount_of_free_memory_is_kept() -> None:
    heap, clock = _Heap(KEPT_BYTES), ManualClock()
    freed = FreedMemory(heap, clock)
    freed.start()
    _look(clock, 3 * LOOKS)
    assert freed.trimming is None


async def test_after_the_stop_no_memory_is_returned() -> None:
    heap, clock = _Heap(KEPT_BYTES + 1), ManualClock()
    freed = FreedMemory(heap, clock)
    freed.start()
    freed.stop()
    freed.stop()
    _look(clock, 3 * LOOKS)
    assert freed.trimming is None


def test_the_heap_of_the_system_reports_bytes_in_use() -> None:
    heap = c_heap()
    if heap is not None:  # a C library without figures is no error
        before = heap.size().in_use_bytes
        kept = bytearray(10_000_000)
        assert heap.size().in_use_bytes - before >= len(kept)
        heap.trim()

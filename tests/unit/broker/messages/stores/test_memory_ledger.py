"""Memory of a million entries is freed in many turns of the event loop."""

import asyncio
import itertools

from broker.messages.metadata import MessageDigest
from broker.messages.stores.memory_ledger import MAPPED_BLOCK_BYTES, Disposal, MemoryLedger
from server.tasks import cooperative


async def test_a_ledger_is_freed_block_by_block(monkeypatch) -> None:
    # A turn without time left after the first block.
    times = iter(range(1_000))
    monkeypatch.setattr(cooperative, "perf_counter", lambda: next(times))
    ledger = MemoryLedger(1)
    for _ in range(3):
        ledger.store(bytes(MAPPED_BLOCK_BYTES), MessageDigest(1, 1, 0))
    freeing = Disposal()
    freeing.free(ledger)
    turns = 0
    while not freeing.is_done:
        await asyncio.sleep(0)
        turns += 1
    assert turns == 4


async def test_a_block_is_freed_in_each_turn_however_slow_the_machine(monkeypatch) -> None:
    moments = itertools.count()
    monkeypatch.setattr(cooperative, "perf_counter", lambda: next(moments) * 3_600.0)
    ledger = MemoryLedger(1)
    for _ in range(3):
        ledger.store(bytes(MAPPED_BLOCK_BYTES), MessageDigest(1, 1, 0))
    freeing = Disposal()
    freeing.free(ledger)
    for _ in range(5):
        await asyncio.sleep(0)
    assert freeing.is_done


def test_entries_come_back_from_blocks_of_every_size() -> None:
    ledger = MemoryLedger(1)
    entries = [bytes([n % 256]) * (n * 37 % 6_000) for n in range(600)]
    for entry in entries:
        ledger.store(entry, MessageDigest(1, 1, 0))
    assert ledger.data(0, 600) == entries
    assert ledger.data(599, 600) == entries[599:]
    assert ledger.data(123, 321) == entries[123:321]

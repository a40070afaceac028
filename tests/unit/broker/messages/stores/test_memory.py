"""Entries in blocks of memory, freed in many turns of the event loop."""

import asyncio

from broker.messages.metadata import MessageDigest
from broker.messages.stores.memory import MAPPED_BLOCK_BYTES, MemoryLedger, MemoryMessageStore
from server.tasks import cooperative


def of_blocks(count: int) -> MemoryLedger:
    """Return a ledger with a block for each entry."""
    ledger = MemoryLedger(1)
    for _ in range(count):
        ledger.store(bytes(MAPPED_BLOCK_BYTES), MessageDigest(1, 1, 0))
    return ledger


def test_a_ledger_is_freed_block_by_block() -> None:
    ledger = of_blocks(3)
    assert len(list(ledger.freed())) == 3
    assert not list(ledger.freed())


async def test_a_block_is_freed_in_each_turn_however_slow_the_machine(monkeypatch) -> None:
    # No turn has time left after the first block.
    monkeypatch.setattr(cooperative, "TURN_SECONDS", -1.0)
    store, ledgers = MemoryMessageStore(), [of_blocks(2), of_blocks(1)]
    for ledger in ledgers:
        store.free(ledger)
    for _ in range(6):
        await asyncio.sleep(0)
    assert not any(list(ledger.freed()) for ledger in ledgers)


async def test_no_block_is_freed_in_the_turn_that_drops_a_ledger() -> None:
    store, ledger = MemoryMessageStore(), of_blocks(2)
    store.free(ledger)
    assert len(list(ledger.freed())) == 2


def test_entries_are_read_back_from_blocks_of_every_size() -> None:
    ledger = MemoryLedger(1)
    entries = [bytes([n % 256]) * (n * 37 % 6_000) for n in range(600)]
    for entry in entries:
        ledger.store(entry, MessageDigest(1, 1, 0))
    assert ledger.data(0, 600) == entries
    assert ledger.data(599, 600) == entries[599:]
    assert ledger.data(123, 321) == entries[123:321]

"""Message databases of a broker, corrupted afterwards."""

import asyncio
import shutil
from collections.abc import Coroutine
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from broker.messages.errors import MessageStoreError
from broker.messages.metadata import MessageDigest
from broker.messages.position import EARLIEST, Position
from broker.messages.stores.managed_ledger import CursorState, ManagedLedger
from broker.messages.stores.room import NO_BOUNDS
from broker.messages.stores.sqlite import database
from broker.messages.stores.sqlite.store import DatabaseOptions, SqliteMessageStore
from broker.messages.subscriptions.cursor import ManagedCursor
from limiter.clock import LoopClock
from tests.fuzz.driving import changed_file
from tests.fuzz.driving.scratch import scratch
from tests.fuzz.rules import ERRORS, BrokenRuleError

CELLS = (
    ("store", "key"), ("store", "value"), ("topics", "topic_id"), ("topics", "name"),
    ("ledgers", "ledger_id"), ("ledgers", "topic_id"), ("ledgers", "entries"),
    ("ledgers", "size_bytes"), ("ledgers", "closed_at"), ("ledgers", "checksum"),
    ("cursors", "name"), ("cursors", "state"), ("properties", "name"), ("properties", "value"),
    ("entries", "row_id"), ("entries", "head"), ("entries", "data"),
)  # fmt: skip
TOPICS = ("persistent://a/b/c", "persistent://a/b/ä")
CURSORS = {
    "new": CursorState(Position(-1, -1)),
    "holes": CursorState(
        Position(2, 0), {2: b"\x04"}, {Position(2, 1): (2**63 - 1, 5)}, {"k": "v"}
    ),
}
SMALL_PAGE_BYTES = 1024
"""More pages, and more page types, in the same bytes."""
_FILE, _LOG = "messages.db", "messages.db-wal"
_loop = asyncio.new_event_loop()
_loop.set_exception_handler(ERRORS.unhandled)


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine beside a database's threads."""
    _loop.run_until_complete(work)


def _store(path: Path, *, skip_damaged: bool = False) -> SqliteMessageStore:
    options = DatabaseOptions(skip_damaged=skip_damaged, max_entries_per_ledger=3)
    return SqliteMessageStore(path, LoopClock(), NO_BOUNDS, options, recent_bytes=0)


async def opened(data: bytes, *, skip_damaged: bool, in_log: bool) -> bool:
    """Open a changed database, read all, write, reopen; return whether the database opened.

    Args:
        data: The changes.
        skip_damaged: Skip damaged entries.
        in_log: Change a killed broker's write-ahead log instead of the file.

    Raises:
        BrokenRuleError: An entry was read but never written.
    """
    folder = scratch("messages") / "found"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in written(killed=in_log).items():
        (folder / name).write_bytes(content)
    changed_file.change(folder / (_LOG if in_log else _FILE), data, CELLS)
    has_opened = False
    for _ in range(2):
        store = _store(folder / _FILE, skip_damaged=skip_damaged)
        try:
            await store.open()
        except MessageStoreError as error:
            _check_sentence(error)
            continue
        has_opened = True
        try:
            await _used(store)
        finally:
            await store.close()
    return has_opened


def _check_sentence(error: MessageStoreError) -> None:
    if "\n" in str(error) or "\0" in str(error):
        raise BrokenRuleError("an error is no sentence") from error


async def _used(store: SqliteMessageStore) -> None:
    """Read and write as a broker does, as far as possible."""
    for name in store.names():
        try:
            ledger = await store.open_ledger(name)
            await _read(ledger)
            await ledger.published_at(1_002)
            ledger.append(b"new", MessageDigest(1, 1, 0))
            await ledger.flushed()
        except MessageStoreError as error:
            _check_sentence(error)
    try:
        await store.delete_ledger(TOPICS[0])
    except MessageStoreError as error:
        _check_sentence(error)


async def _read(ledger: ManagedLedger) -> None:
    for name, state in dict(ledger.cursors).items():
        if state != CURSORS.get(name):
            raise BrokenRuleError("a cursor is read that was never written")
        cursor = ManagedCursor.recovered(ledger, name, state)
        if cursor.backlog < 0:
            raise BrokenRuleError("a cursor has acknowledged more than there is")
    at, last = ledger.following(EARLIEST), ledger.last_confirmed
    while at <= last and (entries := await ledger.fetch(at, 10, 1 << 20)):
        for entry in entries:
            number = entry.publish_time - 1_000
            is_new = (entry.data, entry.publish_time) == (b"new", 1)
            if not is_new and (entry.data, entry.message_count) != (_data(number), number):
                raise BrokenRuleError("an entry is read that was never written")
            digest = ledger.digest(entry.position)
            if digest is not None and digest.publish_time != entry.publish_time:
                raise BrokenRuleError("a digest is another entry's")
        at = ledger.following(entries[-1].position)


def _data(number: int) -> bytes:
    """Return the bytes of an entry; some need overflow pages."""
    return b"entry %d" % number * (1 if number % 4 else 400)


@cache
def written(*, killed: bool) -> dict[str, bytes]:
    """Return the files, by name, of a broker with a little of every kind of data."""
    folder = scratch("messages") / "written"
    folder.mkdir()
    files: dict[str, bytes] = {}
    with patch.object(database, "PAGE_BYTES", SMALL_PAGE_BYTES):
        run(_write(folder / _FILE, files))
    if not killed:
        files = {_FILE: (folder / _FILE).read_bytes()}
    shutil.rmtree(folder)
    return files


async def _write(path: Path, left: dict[str, bytes]) -> None:
    """Write a database; fill ``left`` with the files that a killed broker would leave."""
    store = _store(path)
    await store.open()
    number = 0
    for name in TOPICS:
        ledger = await store.open_ledger(name)
        for _ in range(8):
            ledger.append(_data(number), MessageDigest(number, 1_000 + number, number % 2))
            number += 1
        for subscription, state in CURSORS.items():
            ledger.save_cursor(subscription, state)
        ledger.set_property("epoch", "5")
        await ledger.flushed()
    for file in (_FILE, _LOG):
        left[file] = path.with_name(file).read_bytes()
    await store.close()


SEEDS = changed_file.seeds(CELLS)


def changed(data: bytes, choices: Random, *, in_log: bool) -> bytes:
    """Return an input with a change added or removed."""
    content = written(killed=in_log)[_LOG if in_log else _FILE]
    return changed_file.one_more_or_less(data, choices, content)

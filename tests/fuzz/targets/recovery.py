"""Recovery: message logs and SQLite files as a broker may find them when it starts.

An input: a byte of flags; then the records of a log (whole ones, with their checksums, and any
bytes between them), or changes to a SQLite file that a broker has written.
"""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Any

import google_crc32c
from broker.messages.stores.log import records
from broker.messages.stores.log.segments import segment_name
from broker.messages.stores.log.states import TopicState, cursor_bytes, topic_bytes
from broker.messages.stores.log.store import LogMessageStore, LogOptions

from broker.messages.managed_ledger import MessageStoreError
from broker.messages.metadata import MessageDigest
from broker.messages.position import EARLIEST
from broker.stores.changes import StoreError
from broker.subscriptions.cursor import ManagedCursor
from loadgen.virtual.loop import VirtualClock
from tests.fuzz.driving import found_sqlite
from tests.fuzz.driving.stepped_loop import SteppedLoop
from tests.fuzz.rules import BrokenRuleError
from tests.support.stores.simulated_files import SimulatedFile, SimulatedFiles

if TYPE_CHECKING:
    from broker.messages.managed_ledger import CursorState, ManagedLedger

ALLOWED = (MessageStoreError, StoreError)
FIGURES = {"opened": 0, "sqlite": 0}
DROPS, IS_SQLITE = 1, 128
RAW, FRAMED, ENTRY, ITEM, SYNCED, START, SEGMENT, TEXT_ITEM = range(8)
NAMES = ("segment-1.bak", "segment-", "segment-x", "notes.txt", "segment--1", "identity")
VALUES = (
    topic_bytes(TopicState("persistent://a/b/c", [(1, 5, 1), (2, 0, 0)])),
    topic_bytes(TopicState("persistent://a/b/c", [(1, 0, 0)])),
    topic_bytes(TopicState("x", [])),
    b'["persistent://a/b/c", [1, 0]]', b"[]", b"{}", b"", b"\xff", b'["x", [1, 0, 0, 1, 0, 0]]',
    b"17", b"-1", b"99999999999999999999",
)  # fmt: skip
_loop = SteppedLoop()
_clock = VirtualClock(_loop)


def one_input(data: bytes) -> None:
    """Open what an input describes; what opens is read, and opens again."""
    flags = data[0] if data else 0
    if flags & IS_SQLITE:
        FIGURES["sqlite"] += 1
        found_sqlite.written()
        _loop.run(found_sqlite.opened(data[1:]))
        return
    files = _files(data[1:])
    options = LogOptions(drop_damaged=bool(flags & DROPS), max_entries_per_ledger=4)
    _loop.run(_opened(files, options))
    FIGURES["opened"] += 1
    try:
        _loop.run(_opened(files, options))
    except MessageStoreError as error:
        raise BrokenRuleError("a log that was opened does not open again") from error


async def _opened(files: SimulatedFiles, options: LogOptions) -> None:
    store = LogMessageStore(files, _clock, options=options, now_ms=_clock.wall_ms)
    await store.open()
    try:
        for name in store.names():
            ledger = await store.open_ledger(name)
            _read(ledger)
            ledger.append(b"\0\0\0\0", MessageDigest(1, 1, 0))
    finally:
        await store.close()


def _read(ledger: ManagedLedger) -> None:
    """Read all that is there, as a topic does that is loaded."""
    at, last = ledger.following(EARLIEST), ledger.last_confirmed
    while at <= last and (entries := ledger.read(at, 10, 1 << 20)):
        at = ledger.following(entries[-1].position)
    states: dict[str, CursorState] = dict(ledger.cursors)
    for name, state in states.items():
        cursor = ManagedCursor.recovered(ledger, name, state)
        if cursor.backlog < 0:
            raise BrokenRuleError("a cursor has acknowledged more than there is")
        cursor.skip(1)


# -- the files of a log -----------------------------------------------------------------------


def _files(data: bytes) -> SimulatedFiles:
    """Return the files that the steps of an input make."""
    files = SimulatedFiles()
    files.files["identity"] = SimulatedFile(files, b"0" * 32)
    number, at = 1, 0
    out = bytearray(records.start_record(1))
    while at < len(data):
        what, at = data[at], at + 1
        size = int.from_bytes(data[at : at + 2])
        body, at = data[at + 2 : at + 2 + size], at + 2 + size
        if what % 8 == SEGMENT:
            _keep(files, number, out, body)
            number = number + 1 + (what >> 3) % 3
            out = bytearray(records.start_record(number))
        else:
            out += _record(what % 8, body, number)
    _keep(files, number, out, b"")
    files.sync()
    return files


def _keep(files: SimulatedFiles, number: int, out: bytearray, odd: bytes) -> None:
    files.files[segment_name(number)] = SimulatedFile(files, bytes(out))
    if odd:
        files.files[NAMES[odd[0] % len(NAMES)]] = SimulatedFile(files, odd)


def _record(what: int, body: bytes, segment: int) -> bytes:
    """Return one record, or bytes that are none."""
    if what == FRAMED:
        return struct.pack("<4sII", records.MAGIC, len(body), google_crc32c.value(body)) + body
    if what in (RAW, START):
        return body
    head = (body + bytes(4))[:4]
    if what == ENTRY:
        digest = MessageDigest(head[2] - 1, head[3], 0)
        return records.entry_record(head[0] % 4, head[1] % 8, body[4:], digest) + body[4:]
    if what == SYNCED:
        return records.synced_record(segment - head[0] % 2, int.from_bytes(head[1:3]))
    key = records.ItemKey(head[0] % 3, head[1] % 6, ("", "s", "p")[head[2] % 3])
    return records.item_record(key, None if head[3] == 255 else body[4:])


def _step(what: int, body: bytes) -> bytes:
    return struct.pack(">BH", what, len(body)) + body


def _new_step(choices: random.Random) -> bytes:
    what = choices.choice((RAW, FRAMED, ENTRY, ENTRY, ITEM, ITEM, TEXT_ITEM, SYNCED, SEGMENT))
    head = bytes(choices.choice((0, 1, 1, 2, 3, 4, 255)) for _ in range(4))
    if what in (ITEM, TEXT_ITEM):
        kind = choices.choice((records.TOPIC, records.CURSOR, records.PROPERTY, records.IDS))
        head = bytes((head[0], kind)) + head[2:]
        return _step(what, head + choices.choice((*VALUES, *_cursors())))
    return _step(what, head + choices.randbytes(choices.choice((0, 0, 3, 12, 40))))


def _cursors() -> list[bytes]:
    from broker.messages.managed_ledger import CursorState
    from broker.messages.position import Position

    batches: dict[Any, Any] = {Position(1, 0): (2**63 - 1, 5)}
    return [
        cursor_bytes(CursorState(Position(1, -1), {}, {}, {})),
        cursor_bytes(CursorState(Position(1, 0), {1: b"\xff\x01"}, batches, {"k": "v"})),
        cursor_bytes(CursorState(Position(9, 99), {7: b""}, {}, {})),
    ]


def seeds() -> list[bytes]:
    """Return a log of a topic with a cursor, each kind of record, and SQLite files."""
    item = _step(ITEM, bytes((1, records.TOPIC, 0, 0)) + VALUES[0])
    entries = b"".join(_step(ENTRY, bytes((1, n, 2, 1)) + b"\0\0\0\0") for n in range(3))
    cursors = b"".join(_step(ITEM, bytes((1, records.CURSOR, 1, 0)) + one) for one in _cursors())
    ids = _step(ITEM, bytes((0, records.IDS, 0, 0)) + b"17")
    log = item + entries + cursors + ids
    each = [bytes((0,)) + log + _step(what, b"abcdefgh") for what in range(8)]
    return [
        *each,
        bytes((DROPS,)) + log,
        *(bytes((IS_SQLITE,)) + one for one in found_sqlite.SEEDS),
    ]


def mutated(data: bytes, most_bytes: int, seed: int) -> bytes:
    """Add, take out or change records, or change bytes."""
    import atheris

    choices = random.Random(seed)
    if choices.random() < 0.3 or not data:
        return bytes(atheris.Mutate(data, most_bytes))
    if data[0] & IS_SQLITE:
        return (data[:1] + found_sqlite.changed(data[1:], choices))[:most_bytes]
    steps, at = [], 1
    while at < len(data):
        end = at + 3 + int.from_bytes(data[at + 1 : at + 3])
        steps.append(data[at:end])
        at = end
    at = choices.randrange(len(steps) + 1)
    if at == len(steps) or choices.random() < 0.6:
        steps.insert(at, _new_step(choices))
    elif choices.random() < 0.5:
        del steps[at]
    else:
        steps[at] = choices.choice(steps)
    return (data[:1] + b"".join(steps))[:most_bytes]

"""Recovery: SQLite files of messages and of topics, corrupted before a broker starts.

An input: a byte of flags; then changes to cells or bytes of a broker's file.
"""

import random

from broker.stores.changes import StoreError
from tests.fuzz.driving import found_messages, found_sqlite
from tests.fuzz.driving.stepped_loop import SteppedLoop

ALLOWED = (StoreError,)
FIGURES = {"opened": 0, "topics": 0}
SKIPS, IN_LOG, OF_TOPICS = 1, 2, 128
_loop = SteppedLoop()


def one_input(data: bytes) -> None:
    """Open the file of an input; read, write and reopen a valid file."""
    flags = data[0] if data else 0
    if flags & OF_TOPICS:
        FIGURES["topics"] += 1
        found_sqlite.written()
        _loop.run(found_sqlite.opened(data[1:]))
        return
    skips, in_log = bool(flags & SKIPS), bool(flags & IN_LOG)
    found_messages.written(killed=in_log)
    found_messages.run(_messages(data[1:], skips=skips, in_log=in_log))


async def _messages(data: bytes, *, skips: bool, in_log: bool) -> None:
    FIGURES["opened"] += await found_messages.opened(data, skip_damaged=skips, in_log=in_log)


def seeds() -> list[bytes]:
    """Return files with each cell changed, and bytes."""
    return [
        *(bytes((flags,)) + one for flags in range(4) for one in found_messages.SEEDS),
        *(bytes((OF_TOPICS,)) + one for one in found_sqlite.SEEDS),
    ]


def mutated(data: bytes, most_bytes: int, seed: int) -> bytes:
    """Add or remove a change of the file, or change bytes of the input."""
    choices = random.Random(seed)
    if choices.random() < 0.1 or not data:
        import atheris

        return bytes(atheris.Mutate(data, most_bytes))
    flags = data[0] if choices.random() < 0.9 else choices.choice((0, SKIPS, IN_LOG, OF_TOPICS))
    if flags & OF_TOPICS:
        changed = found_sqlite.changed(data[1:], choices)
    else:
        changed = found_messages.changed(data[1:], choices, in_log=bool(flags & IN_LOG))
    return (bytes((flags,)) + changed)[:most_bytes]

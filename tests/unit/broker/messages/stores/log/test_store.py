"""A process that is killed while it writes a log to disk."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from broker.messages.position import EARLIEST, LATEST, Position
from broker.messages.stores.log.files import DiskFiles
from broker.messages.stores.log.store import LogMessageStore
from limiter.clock import LoopClock
from tests.support.stores.message_stores import TOPIC, opened

if TYPE_CHECKING:
    from pathlib import Path

WRITE = """
import asyncio, sys
from pathlib import Path
from broker.messages.metadata import MessageDigest
from broker.messages.stores.log.files import DiskFiles
from broker.messages.stores.log.store import LogMessageStore, LogOptions
from limiter.clock import LoopClock

class Telling:
    def confirmed(self, last):
        print(last.ledger_id, last.entry_id, flush=True)
    def failed(self, error):
        raise error

async def main(path, name, fsync):
    options = LogOptions(fsync == "True", False, 50)
    store = LogMessageStore(DiskFiles(Path(path)), LoopClock(), options=options)
    await store.open()
    ledger = await store.open_ledger(name)
    ledger.listener = Telling()
    number = 0
    while True:
        for _ in range(7):
            ledger.append(b"entry %d" % number, MessageDigest(1, number, 0))
            number += 1
        await asyncio.sleep(0)

asyncio.run(main(*sys.argv[1:]))
"""


def killed_writer(path: Path, *, fsync: bool) -> Position:
    """Kill a process that writes; return the last position that it had confirmed."""
    command = [sys.executable, "-c", WRITE, str(path), TOPIC, str(fsync)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(60)]
        process.kill()
        lines += process.stdout.readlines()
    whole = [line for line in lines if line.endswith(b"\n")]
    return Position(*map(int, whole[-1].split()))


@pytest.mark.parametrize("fsync", [False, True])
async def test_what_was_confirmed_is_there_after_a_kill(tmp_path: Path, *, fsync: bool) -> None:
    # When
    confirmed = killed_writer(tmp_path, fsync=fsync)
    # Then
    async with opened(LogMessageStore(DiskFiles(tmp_path), LoopClock())) as store:
        ledger = await store.open_ledger(TOPIC)
        assert ledger.last_confirmed >= confirmed
        count = ledger.count(EARLIEST, LATEST)
        assert [ledger.entry(ledger.at(EARLIEST, n + 1)).data for n in range(count)] == [
            b"entry %d" % n for n in range(count)
        ]

"""``python -m tests.proof.soaks.killed_broker POINT NUMBER MARK ...``: a broker that dies.

Some places of the broker's message database send SIGKILL to their own process at the n-th passage.
A broker killed so leaves the file MARK behind. The write-ahead log is checkpointed every few pages,
so that kills hit checkpoints, too.
"""

import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import broker.messages.stores.sqlite.batch as batch
from broker.__main__ import main
from broker.messages.stores.sqlite.batch import Batch, DroppedLedger
from broker.messages.stores.sqlite.database import DatabaseFile
from broker.messages.stores.sqlite.managed_ledger import SqliteManagedLedger
from broker.messages.subscriptions.subscription import Subscription
from broker.messages.subscriptions.subscriptions import Subscriptions

CHECKPOINT_PAGES = 10

POINTS = {
    "before-transaction": 120,
    "within-transaction": 120,
    "behind-transaction": 120,
    "before-confirm": 150,
    "behind-confirm": 150,
    "before-cursor-save": 8,
    "behind-cursor-save": 8,
    "before-cursor-write": 5,
    "behind-cursor-write": 5,
    "behind-seek": 2,
    "before-close": 3,
    "behind-close": 3,
    "before-deletion": 1,
    "behind-deletion": 1,
}
"""Each with its number of passages in a broker's first seconds."""

NEVER = "never"


class Death:
    """The point of this process's death."""

    def __init__(self, point: str, number: int, mark: str) -> None:
        self._lock = threading.Lock()
        self._point, self._left, self._mark = point, number, mark

    def passed(self, point: str) -> None:
        """Count a point's passage; die at the last."""
        if point != self._point:
            return
        with self._lock:
            self._left -= 1
            if not self._left:
                Path(self._mark).write_text(point)
                os.kill(os.getpid(), signal.SIGKILL)


DEATH = Death(NEVER, 0, "")


def _around(owner: object, name: str, before: str, behind: str) -> None:
    """Put points around a function."""
    function: Callable[..., object] = getattr(owner, name)

    def around(*args: object, **named: object) -> object:
        DEATH.passed(before)
        result = function(*args, **named)
        DEATH.passed(behind)
        return result

    setattr(owner, name, around)


def _with_cursors(write: Callable[..., None]) -> Callable[..., None]:
    """Put points around transactions with cursors."""

    def around(self: Batch, connection: sqlite3.Connection) -> None:
        has_cursor = any("cursors" in statement for statement, _ in self.states.values())
        if has_cursor:
            DEATH.passed("before-cursor-write")
        write(self, connection)
        if has_cursor:
            DEATH.passed("behind-cursor-write")

    return around


def _with_checkpoints(
    writer: Callable[..., sqlite3.Connection],
) -> Callable[..., sqlite3.Connection]:
    def opened(self: DatabaseFile, max_pages: int = 0) -> sqlite3.Connection:
        connection = writer(self, max_pages)
        connection.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")
        return connection

    return opened


def _exchange() -> None:
    _around(Batch, "write", "before-transaction", "behind-transaction")
    # Statements are looked up while the transaction is open.
    _around(batch, "_insertion", "within-transaction", "")
    _around(DroppedLedger, "delete_some", "before-deletion", "behind-deletion")
    _around(SqliteManagedLedger, "stored", "before-confirm", "behind-confirm")
    _around(SqliteManagedLedger, "save_cursor", "before-cursor-save", "behind-cursor-save")
    _around(Subscriptions, "close", "before-close", "behind-close")
    _around(Subscription, "seek", "before-seek", "behind-seek")
    setattr(Batch, "write", _with_cursors(Batch.write))  # noqa: B010 - mypy
    setattr(DatabaseFile, "writer", _with_checkpoints(DatabaseFile.writer))  # noqa: B010


if __name__ == "__main__":
    at, times, left_behind = sys.argv[1:4]
    del sys.argv[1:4]
    DEATH = Death(at, int(times), left_behind)
    _exchange()
    main()

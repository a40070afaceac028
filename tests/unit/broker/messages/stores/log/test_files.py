"""Files of the log on a real disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from broker.messages.managed_ledger import MessageStoreError
from broker.messages.stores.log.files import DiskFiles

if TYPE_CHECKING:
    from pathlib import Path

HOLD = """
import sys, time
from pathlib import Path
from broker.messages.stores.log.files import DiskFiles
files = DiskFiles(Path(sys.argv[1]))
files.lock()
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_file_grows_is_read_and_cut(tmp_path: Path) -> None:
    # Given
    files = DiskFiles(tmp_path / "made" / "here")
    files.lock()
    file = files.create("a")
    # When
    file.append(b"one")
    file.append(b"two")
    file.sync()
    files.sync()
    file.truncate(4)
    # Then
    assert file.size() == 4
    assert file.pread(10, 1) == b"net"
    assert files.names() == ["a"]
    files.unlink("a")
    assert files.names() == []
    file.close()
    files.release()


def test_a_log_belongs_to_one_broker_also_while_that_is_frozen(tmp_path: Path) -> None:
    # Given
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        os.kill(other.pid, signal.SIGSTOP)
        # When
        files = DiskFiles(tmp_path)
        with pytest.raises(MessageStoreError, match=f"in use by process {other.pid}; a log"):
            files.lock()
        # Then: who is gone holds nothing.
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        files.lock()
        files.release()

"""``loadgen run --scenario client-memory`` with a broker of its own, as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from pathlib import Path

SMALL = (
    *("--backlog-topics", "2", "--consumers-per-topic", "3", "--backlog", "2MB"),
    *("--message", "10kB", "--work-seconds", "0.05", "--drain-seconds", "0.6"),
    *("--producers", "2", "--producer-messages", "6", "--stopped-seconds", "0.3"),
)


@pytest.mark.processes
def test_a_small_run_holds_its_limit_and_leaves_nothing(tmp_path: Path) -> None:
    # When
    done = subprocess.run(
        [
            *(sys.executable, "-m", "loadgen", "run", "--scenario", "client-memory", *SMALL),
            *("--executor", "process", "--out", str(tmp_path), "--name", "small", "--json"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    # Then
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["client_memory"]
    assert all(check["passed"] for check in found["checks"])
    assert found["parts"]["bytes"]["messages"] > 6
    assert found["parts"]["pulsar"]["messages"] > 6
    assert found["parts"]["producers"]["messages"] == 12
    assert found["parts"]["producers"]["sends_waiting_peak"] > 0
    rows = pq.read_table(tmp_path / "small" / "client-memory.parquet").to_pylist()
    assert any(row["stopped"] for row in rows)
    assert [path.name for path in tmp_path.iterdir()] == ["small"]

"""The rows of a task: what was due in the warm-up is left out, unless it was wrong."""

from __future__ import annotations

import pyarrow as pa

from loadgen.scenarios.discovery.task import counted


def test_the_warm_up_is_left_out_unless_it_was_wrong():
    rows = pa.table(
        {
            "intended_start_seconds": [0.0, 1.0, 5.0, 6.0, None],
            "outcome": ["answered", "wrong", "answered", "refused", "unfinished"],
        }
    )
    # When
    found = counted(rows, 5.0)
    # Then
    assert found["outcome"].to_pylist() == ["wrong", "answered", "refused", "unfinished"]
    assert counted(rows, 0.0).num_rows == 5

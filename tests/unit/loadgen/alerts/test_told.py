from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.alerts.told import seen_by_scrapes, seen_rows
from loadgen.results.results import Results
from tests.support.runs.recorded_run import record_run, sample

if TYPE_CHECKING:
    from pathlib import Path


def test_a_peak_between_two_scrapes_is_not_seen(tmp_path: Path) -> None:
    # Given
    samples = [
        *(sample("heap.used", second, 5e6 * (second < 3)) for second in range(10)),
        sample("heap.used", 10, 3e6),
        sample("heap.limit", 1, 20 * 1024 * 1024),
        sample("heap.timeouts", 0, 0),
        sample("heap.timeouts", 9, 7),
        sample("direct.used", 0, 0),
    ]
    # When
    with Results.open(record_run(tmp_path / "run", samples=samples)) as run:
        found = seen_by_scrapes(run)
    # Then
    heap, direct = found
    assert (heap["most"], heap["seen"], heap["timeouts"]) == (5e6, 3e6, 7)
    assert direct["most"] == 0
    assert [row[0] for row in seen_rows(found)] == ["broker heap.used"]

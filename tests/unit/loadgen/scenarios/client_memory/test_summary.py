"""The figures of a run's parts, and what is judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from loadgen.errors import ExitCode, LoadgenError
from loadgen.scenarios.client_memory.summary import (
    SERIES_NAME,
    client_memory_document,
    require_held,
    resident_limit,
    write_series,
)
from tests.support.runs.client_memory_runs import LIMIT, SCENARIO, SENT, found, report, sample

if TYPE_CHECKING:
    from pathlib import Path


def document(*parts: dict[str, Any]) -> dict[str, Any]:
    summary: dict[str, Any] = client_memory_document(SCENARIO, [report(*parts)])
    return summary


def test_a_part_is_summed_up_by_its_highest_and_its_last_sample() -> None:
    # Given
    highest = sample(1.0, queue_most=9, queue_sum=30)
    part = found("bytes", samples=[highest, sample(2.0, shrinks=2)])
    # When
    figures = document(part)["client_memory"]["parts"]["bytes"]
    # Then
    assert (figures["queue_most_peak"], figures["queue_most_at_end"]) == (9, 4)
    assert (figures["queue_sum_peak"], figures["shrinks_peak"]) == (30, 2)
    assert figures["seconds"] == 2.0
    assert figures["first_message_slowest_seconds"] == pytest.approx(0.3)


def test_who_got_no_message_is_counted() -> None:
    part = found("bytes", first_messages=[[0.0, None], [0.5, None]])
    figures = document(part)["client_memory"]["parts"]["bytes"]
    assert (figures["without_message"], figures["first_message_slowest_seconds"]) == (2, None)


def test_a_run_that_is_as_it_should_be_passes(tmp_path: Path) -> None:
    summary = document()
    assert [check["passed"] for check in summary["client_memory"]["checks"]] == [True] * 6
    require_held(summary, tmp_path)


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (
            found("bytes", high_water_bytes=LIMIT + 3 * SCENARIO.message_bytes + 1),
            "counted while consuming",
        ),
        (
            found("bytes", resident_peak_bytes=resident_limit(SCENARIO) + 1),
            "resident while consuming",
        ),
        (found("bytes", first_messages=[[0.0, 0.1], [0.1, None]]), "first messages"),
        (
            found("", high_water_bytes=LIMIT + SCENARIO.producer_message_bytes + 1_025),
            "counted while sending",
        ),
        (found("", messages=SENT - 1), "delivered"),
        (found("pulsar", usage_after_closing_bytes=1), "given back"),
    ],
)
def test_what_does_not_hold_ends_a_run_with_99(
    part: dict[str, Any], name: str, tmp_path: Path
) -> None:
    # Given
    summary = document(part)
    failed = [each for each in summary["client_memory"]["checks"] if not each["passed"]]
    assert [each["name"] for each in failed] == [name]
    # When
    with pytest.raises(LoadgenError) as refused:
        require_held(summary, tmp_path)
    # Then
    assert refused.value.exit_code is ExitCode.THRESHOLDS
    assert str(refused.value) == failed[0]["sentence"]


def test_what_is_allowed_just_passes() -> None:
    parts = (
        found(
            "bytes",
            high_water_bytes=LIMIT + 3 * SCENARIO.message_bytes,
            resident_peak_bytes=resident_limit(SCENARIO),
        ),
        found("", high_water_bytes=LIMIT + SCENARIO.producer_message_bytes + 1_024),
    )
    assert all(check["passed"] for check in document(*parts)["client_memory"]["checks"])


def test_where_a_topic_has_fewer_messages_than_consumers_some_may_get_none() -> None:
    part = found("bytes", first_messages=[[0.0, 0.1], [0.1, None]])
    scarce = SCENARIO.model_copy(update={"backlog_bytes": 5 * SCENARIO.message_bytes})
    checks = client_memory_document(scarce, [report(part)])["client_memory"]["checks"]
    assert all(check["passed"] for check in checks)


def test_upstreams_queues_are_not_judged_by_the_limit() -> None:
    part = found("pulsar", high_water_bytes=100 * LIMIT, resident_peak_bytes=100 * LIMIT)
    assert [check["name"] for check in document(part)["client_memory"]["checks"]] == ["given back"]


def test_samples_are_written_with_times_since_t0_and_whether_the_server_stood(
    tmp_path: Path,
) -> None:
    write_series(tmp_path, [report()])
    rows = pq.read_table(tmp_path / SERIES_NAME).to_pylist()
    assert [(row["part"], row["at_seconds"], row["stopped"]) for row in rows[::2]] == [
        ("bytes", 1.0, False),
        ("bytes", 3.0, False),
        ("pulsar", 2.0, False),
        ("producers", 1.0, False),
        ("producers", 3.0, False),
    ]
    assert [row["stopped"] for row in rows[6:]] == [False, True, False]

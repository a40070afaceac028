"""A row's name says what Prometheus shows: a counter, labels, the unit."""

from enum import Enum

from limiter.metrics.instruments import Instrument, gauge, summary, table
from limiter.metrics.prometheus import family
from limiter.metrics.wait_times import WaitTimes
from tests.support.clocks.manual_clock import ManualClock


class Cause(Enum):
    FULL = "buffer_full"


def shown(row: Instrument[object], source: object, created: float | None = None) -> list[str]:
    found = family(row, source, {"cluster": "c"}, created, "x_")
    return [
        f"{found.type} {one.name} {list(one.labels.values())} {one.value}" for one in found.samples
    ]


def test_total_in_the_name_of_a_row_makes_a_counter_and_braces_make_labels() -> None:
    rows = table("pauses", ("_total{cause}", "Times paused", dict), ("", "Paused now", len))
    counted, now = rows
    assert shown(counted, {Cause.FULL: 3}) == ["counter x_pauses_total ['c', 'buffer_full'] 3"]
    assert shown(now, {Cause.FULL: 3}) == ["gauge x_pauses ['c'] 1"]


def test_a_key_with_fewer_values_than_labels_omits_the_remaining_labels() -> None:
    (row,) = table("faults_total{type,fault}", ("", "Faults", lambda _: [(("heap",), 0)]))
    assert shown(row, object()) == ["counter x_faults_total ['c', 'heap'] 0"]


def test_a_summary_exports_its_start_of_counting_and_a_gauge_does_not() -> None:
    waits = summary("wait.time", "Waits", lambda _: WaitTimes(ManualClock()), (), unit="s")
    rises_and_falls = gauge("memory.used", "Memory", lambda _: 5, unit="By")
    assert shown(rises_and_falls, object(), 7.5) == ["gauge x_memory_used_bytes ['c'] 5"]
    assert shown(waits, object(), 7.5) == [
        "summary x_wait_time_ms_count ['c'] 0",
        "summary x_wait_time_ms_sum ['c'] 0.0",
        "summary x_wait_time_ms_created ['c'] 7.5",
    ]

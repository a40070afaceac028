"""The screen of a run fits 80 by 24, whatever the content."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.engine.rows import Outcome, RequestRow
from loadgen.engine.totals import (
    BUCKETS,
    Totals,
    bucket_of,
    nearest_rank,
    percentile,
    seconds_of,
)
from loadgen.live import COLUMNS, ROWS, WINDOW_SECONDS, LiveRun, server_lines
from loadgen.places.options import RunOptions
from loadgen.places.sampling import Samples

GROUPS = ("a-1", "b", "c", "d", "e", "f", "g")


def watch_of(**figures: float) -> Samples:
    samples = Samples(("broker", "proxy"))
    for name in samples.processes:
        told = {metric.replace("PROCESS", name): value for metric, value in figures.items()}
        samples.add(name, 0.0, told)
    return samples


FULL = watch_of(
    pulsar_PROCESS_topic_list_heap_memory_used_bytes=10**11,
    pulsar_PROCESS_topic_list_heap_memory_limit_bytes=10**11,
    pulsar_PROCESS_topic_list_heap_queue_size=10**6,
    pulsar_PROCESS_topic_list_direct_memory_used_bytes=10**9,
    pulsar_PROCESS_topic_list_direct_memory_limit_bytes=10**11,
    floodgate_outbound_pending_bytes=10**16,
    process_resident_memory_bytes=10**16,
    process_cpu_seconds_total=3.0,
    process_open_fds=100_000,
    process_max_fds=1_048_576,
)


def lines_of(
    counters: Totals, watch: Samples | None, title: str = "run", groups: int = 1
) -> list[str]:
    run = LiveRun(title, dict.fromkeys(GROUPS[:groups], 10), now=lambda: 0.0)
    run.add(counters)
    if watch is not None:
        run.observed(RunOptions()).on_samples(watch)
    return run.screen().plain.splitlines()


@pytest.mark.parametrize("watch", [None, watch_of(), FULL], ids=["none", "silent", "full"])
@pytest.mark.parametrize("groups", [1, 7])
@pytest.mark.parametrize("each", [0, 10**7])
def test_the_screen_fits_80_columns_by_24_rows_for_any_content(
    watch: Samples | None, groups: int, each: int
) -> None:
    counters = Totals(connected=each, started=each, bytes=each)
    counters.phase = "warm-up" if each else "connect"
    for name in GROUPS[:groups]:
        counters.clients[f"{name} started"] = counters.clients[f"{name} back"] = each
        counters.ended[f"{name} list timeout"] = each
    lines = lines_of(counters, watch, title="restart-storm-" * 9, groups=groups)
    assert len(lines) < ROWS
    assert max(map(len, lines)) <= COLUMNS


def test_six_groups_and_two_servers_fit_the_screen_completely() -> None:
    counters = Totals(started=60)
    for name in GROUPS[:6]:
        counters.clients[f"{name} started"] = 10
        counters.clients[f"{name} back"] = 1
    lines = lines_of(counters, FULL, groups=6)
    assert sum(line.split()[:3] == [name, "10", "1"] for name in GROUPS for line in lines) == 6
    assert lines[3].split()[:3] == ["all", "60", "6"]
    assert lines[-3].startswith(" proxy   heap")
    assert "CPU" not in lines[-1]  # a total has no growth
    assert "files 100,000 of 1,0" in lines[-1]


def test_a_server_without_metrics_is_shown_in_a_single_line() -> None:
    assert lines_of(Totals(), watch_of())[-2:] == [
        " broker  tells nothing",
        " proxy   tells nothing",
    ]


def test_processor_use_is_the_growth_of_processor_time_per_second() -> None:
    watch = watch_of(process_cpu_seconds_total=3.0)
    for process in watch.processes:
        watch.add(process, 2.0, {"process_cpu_seconds_total": 4.5})
    assert [line.plain.split()[1:] for line in server_lines(watch)] == [["CPU", "0.75"]] * 2


def test_a_single_group_has_a_single_line() -> None:
    ended = {"a-1 list answered": 4, "a-1 list refused": 2, "a-1 lookup wrong": 1}
    lines = lines_of(Totals(clients={"a-1 started": 9, "a-1 back": 4}, ended=ended), None)
    assert lines[3].split() == ["all", "9", "of", "10", "4", "4", "2", "1"]
    assert len(lines) == 7


def test_rates_and_percentiles_cover_only_the_recent_window() -> None:
    # Given a second of slow answers, then a long time of quick answers
    moment = 0.0
    run, total = LiveRun("run", {"a": 10}, now=lambda: moment), Totals()
    for seconds, latency in ((1, 20.0), (2 * int(WINDOW_SECONDS), 0.1)):
        for _ in range(seconds):
            moment += 1
            for _ in range(10):
                total.started += 1
                row = RequestRow(0, "a", "", "list", "a/b", 0.0, done=latency)
                row.outcome = Outcome.ANSWERED
                total.end(row)
            run.add(Totals() + total)
    assert run.ended_per_second == 10
    assert run.percentile(0.99) == pytest.approx(0.1, rel=0.25)
    assert run.screen().plain.splitlines()[0].rstrip().endswith(f" {moment - 1:.0f} s")


def test_before_the_first_totals_there_is_no_rate_or_percentile() -> None:
    run = LiveRun("run", {"a": 10}, now=lambda: 0.0)
    assert (run.percentile(0.5), run.ended_per_second) == (None, 0.0)
    assert run.screen().plain.splitlines()[0].rstrip().endswith(" connecting")


@given(st.floats(0, 1e9))
def test_a_latency_counts_in_the_first_bucket_that_ends_above_its_value(seconds: float) -> None:
    bucket = bucket_of(seconds)
    assert bucket == BUCKETS - 1 or seconds <= seconds_of(bucket) * (1 + 1e-9)
    assert bucket == 0 or seconds > seconds_of(bucket - 1) * (1 - 1e-9)


@given(st.lists(st.floats(0.001, 600), min_size=1), st.floats(0.01, 1))
def test_a_percentile_is_at_most_a_bucket_width_too_long(
    latencies: list[float], share: float
) -> None:
    counts = [0] * BUCKETS
    for seconds in latencies:
        counts[bucket_of(seconds)] += 1
    found = percentile(counts, share)
    exact = nearest_rank(sorted(latencies), share)
    assert found is not None
    assert exact * (1 - 1e-6) <= found <= max(exact, 0.001) * 1.25 * (1 + 1e-6)

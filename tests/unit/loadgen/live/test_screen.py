"""The screen of a run fits 80 by 24, whatever is to be told."""

from __future__ import annotations

import pytest

from loadgen.clients.records import RequestCounters
from loadgen.live.pulse import Pulse
from loadgen.live.screen import COLUMNS, ROWS, screen
from loadgen.live.servers import ServerRows
from loadgen.servers.series import (
    ProcessSeries,
    ScrapedSeries,
    ScrapeTarget,
    WatchedServers,
)

FAMILIES = ("once", "polite", "java-watch", "java-poll", "cpp", "go", "a-seventh")


def watch_of(**figures: float) -> WatchedServers:
    watch = WatchedServers(
        {name: ProcessSeries(ScrapeTarget(name, "http://x")) for name in ("broker", "proxy")}
    )
    for name, process in watch.processes.items():
        for metric, value in figures.items():
            series = ScrapedSeries()
            series.add(0.0, value)
            process.series[metric.replace("PROCESS", name)] = series
    return watch


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
    counters: RequestCounters, watch: WatchedServers | None, title: str = "run"
) -> list[str]:
    pulse = Pulse(lambda: 0.0)
    pulse.add(counters)
    rows = None if watch is None else ServerRows(watch, now=lambda: 0.0)
    return screen(title, "connecting", 10_000_000, pulse, rows).plain.splitlines()


@pytest.mark.parametrize("watch", [None, watch_of(), FULL], ids=["none", "silent", "full"])
@pytest.mark.parametrize("families", [0, 1, 7])
@pytest.mark.parametrize("each", [0, 10**7])
def test_the_screen_fits(watch: WatchedServers | None, families: int, each: int) -> None:
    # Given
    counters = RequestCounters(*[each] * 9, phase="warm-up" if each else "")
    for name in FAMILIES[:families]:
        counters.family(name).arrived = counters.family(name).lost = each
    # When
    lines = lines_of(counters, watch, title="restart-storm-" * 9)
    # Then
    assert len(lines) < ROWS
    assert max(map(len, lines)) <= COLUMNS


def test_with_six_families_and_two_servers_nothing_is_left_out() -> None:
    # Given
    counters = RequestCounters(started=60, answered=6)
    for name in FAMILIES[:6]:
        counters.family(name).arrived = 10
        counters.family(name).back = 1
    # When
    lines = lines_of(counters, FULL)
    # Then
    assert sum(line.split()[:3] == [name, "10", "1"] for name in FAMILIES for line in lines) == 6
    assert [line.split()[1] for line in lines if line.split()[1:3] == ["60", "6"]] == ["60"]
    assert lines[-3].startswith(" proxy   heap")
    assert "CPU" not in lines[-1]  # a total says nothing of its growth
    assert "files 100,000 of 1,0" in lines[-1]


def test_what_a_server_does_not_tell_is_left_out() -> None:
    assert lines_of(RequestCounters(), watch_of())[-2:] == [
        " broker  tells nothing",
        " proxy   tells nothing",
    ]


def test_the_growth_of_processor_time_is_what_keeps_processors_busy() -> None:
    # Given
    moment = 0.0
    watch = watch_of(process_cpu_seconds_total=3.0)
    rows = ServerRows(watch, now=lambda: moment)
    list(rows.lines())
    # When
    moment = 2.0
    for process in watch.processes.values():
        process.series["process_cpu_seconds_total"].add(2.0, 4.5)
    # Then
    assert [line.plain.split()[1:] for line in rows.lines()] == [["CPU", "0.75"]] * 2


def test_clients_without_families_have_one_line() -> None:
    lines = lines_of(RequestCounters(started=9, answered=4, refused=2, timeout=1), None)
    assert lines[3].split()[:5] == ["all", "9", "4", "2", "1"]
    assert lines[3].endswith("█░░░░░░░░░░░░░░░░░░░   0%")  # 4 of ten millions show
    assert len(lines) == 7

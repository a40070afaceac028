from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loadgen.clients.records import CLIENT_ROWS, ROWS, TaskFacts, TaskReport
from loadgen.results.latency import percentiles
from loadgen.results.reading import load_client_rows, load_request_rows
from loadgen.results.writing import (
    agreed_reports,
    process_document,
    summarized,
    write_clients,
    write_requests,
    write_server_metrics,
)
from loadgen.places.sampling import ProcessWatch, ServerWatch
from loadgen.servers.series import ScrapedSeries, ScrapeTarget

MB = 1024 * 1024


def row(client: int, outcome: str = "answered", **changes) -> dict[str, object]:
    values = {
        "client": client,
        "task": client % 2,
        "namespace": "load/ns",
        "operation": "list",
        "group": "",
        "family": "",
        "intended_start_seconds": 1.0,
        "started_seconds": 1.5,
        "first_byte_seconds": 2.0,
        "finished_seconds": 2.0 + client,
        "outcome": outcome,
        "reason": "",
        "topics": 5,
        "bytes": 100,
        "topics_hash": "aa",
    }
    return {**values, **changes}


def table(*rows: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=ROWS)


def report(task: int, *rows: dict[str, object], late: float = 0.0, last: float = 0.0) -> TaskReport:
    return TaskReport(table(*rows), TaskFacts(task, len(rows), late, last, 0.0))


@pytest.mark.parametrize(
    ("late", "last", "limited"),
    [(0.05, 0.25, False), (0.051, 0.051, True), (0.0, 0.26, True)],
)
def test_a_late_generator_is_told_from_a_slow_server(
    late: float, last: float, limited: bool
) -> None:
    document = summarized([report(0, row(0), late=late, last=last)])
    assert document["generator_limited"] is limited
    assert document["start_error_seconds_max"] == late
    assert document["client_start_error_seconds_max"] == last


def test_outcomes_reasons_and_bytes_are_counted() -> None:
    # When
    found = report(
        0,
        row(0),
        row(1),
        row(2, "refused", reason="TooManyRequests: full"),
        row(3, "timeout"),
        row(4, "unreachable", started_seconds=None, finished_seconds=None),
    )
    document = summarized([found])
    # Then
    assert (document["answered"], document["timeout"], document["unreachable"]) == (2, 1, 1)
    assert document["refused"] == {"TooManyRequests: full": 1}
    assert document["bytes"] == 500
    assert document["duration_seconds"] == 5.0


def test_latency_counts_from_the_intended_start_and_service_latency_from_the_actual() -> None:
    document = summarized([report(0, row(0), row(9, "refused"))])
    assert document["latency_seconds"]["max"] == 1.0
    assert document["service_latency_seconds"]["max"] == 0.5


def test_tasks_in_any_order_make_the_same_summary() -> None:
    # Given
    reports = [
        report(0, row(0), row(1, "refused", reason="a"), late=0.01, last=0.01),
        report(1, row(2), row(3, "refused", reason="b"), late=0.03, last=0.03),
        report(2, row(4, "disconnected"), row(5), late=0.02, last=0.02),
    ]
    # When
    documents = [summarized(each) for each in itertools.permutations(reports)]
    # Then
    assert all(document == documents[0] for document in documents)
    assert documents[0]["start_error_seconds_max"] == 0.03
    assert documents[0]["client_start_error_seconds_max"] == 0.03
    assert documents[0]["answered"] == 3


def test_the_smallest_and_the_largest_answer_are_told() -> None:
    # Given
    small = report(0, row(0) | {"topics": 3, "bytes": 30}, row(1, "refused"))
    large = report(0, row(2) | {"topics": 9, "bytes": 90})
    # When
    document = summarized([small, large])
    # Then
    assert document["topics_per_answer"] == {"min": 3, "max": 9}
    assert document["bytes_per_answer"] == {"min": 30, "max": 90}
    refused = summarized([report(0, row(1, "refused"))])
    assert refused["topics_per_answer"] is refused["bytes_per_answer"] is None


def test_percentiles_are_values_that_occurred() -> None:
    found = percentiles(range(1, 10_001))
    assert found == {
        "p50": 5000, "p90": 9000, "p99": 9900, "p999": 9990, "p9999": 9999, "max": 10_000,
    }  # fmt: skip
    assert percentiles([7.0]) == dict.fromkeys(found, 7.0)
    assert percentiles([]) is None


def test_answers_that_differ_between_tasks_are_wrong() -> None:
    # Given
    first, second = report(0, row(0)), report(1, row(1, topics=6, topics_hash="bb"), row(3))
    # When
    agreed = agreed_reports([second, first])
    # Then
    assert [each.facts.task for each in agreed] == [0, 1]
    outcomes = [each for part in agreed for each in part.rows["outcome"].to_pylist()]
    assert outcomes == ["answered", "wrong", "answered"]


def test_requests_file_has_exactly_the_contracts_columns(tmp_path) -> None:
    path = tmp_path / "requests.parquet"
    write_requests(path, [report(0, row(0)), report(1, row(1))])
    written = pq.read_table(path)
    assert written.num_rows == 2
    assert written.column_names == [
        "client", "task", "namespace", "operation", "group", "family",
        "intended_start_seconds", "started_seconds",
        "first_byte_seconds", "finished_seconds", "outcome", "reason", "topics", "bytes",
    ]  # fmt: skip


def test_clients_have_a_file_only_where_there_are_any(tmp_path) -> None:
    # Given
    client = {
        "client": 4, "task": 0, "group": "java", "family": "polite", "namespace": "load/ns",
        "intended_start_seconds": 0.0, "connected_seconds": 0.1,
        "listed_seconds": None, "back_seconds": None, "restarts": 0, "connections": 1,
        "outcome": "refused", "reason": "full", "listings": 3, "reconnects": 1,
    }  # fmt: skip
    found = replace(report(0, row(0)), clients=pa.Table.from_pylist([client], schema=CLIENT_ROWS))
    for directory in ("none", "one"):
        (tmp_path / directory).mkdir()
    # When
    write_clients(tmp_path / "none" / "clients.parquet", [report(0, row(0))])
    write_clients(tmp_path / "one" / "clients.parquet", [found, report(1, row(1))])
    # Then
    assert not list((tmp_path / "none").iterdir())
    assert load_client_rows(tmp_path / "none").num_rows == 0
    assert load_client_rows(tmp_path / "one").to_pylist() == [client]


def test_requests_of_an_older_run_are_listings_of_clients_without_family(tmp_path) -> None:
    # Given
    path = tmp_path / "requests.parquet"
    write_requests(path, [report(0, row(0))])
    today = pq.read_table(path)
    pq.write_table(today.drop_columns(["operation", "group", "family"]), path)
    # When
    found = load_request_rows(tmp_path)
    # Then
    assert found.select(today.column_names).to_pylist() == today.to_pylist()


def watched(process: str = "broker", **series: list[float]) -> ProcessWatch:
    watch = ProcessWatch(ScrapeTarget(process, "http://127.0.0.1:1"))
    for metric, values in series.items():
        watch.series[metric] = ScrapedSeries()
        for at, value in enumerate(values):
            watch.series[metric].add(float(at), value)
    return watch


def test_memory_without_a_limit_is_not_accounted() -> None:
    document = process_document(watched(pulsar_broker_topic_list_heap_memory_limit_bytes=[0]))
    assert document["heap"] is None
    assert document["direct"] is None


def test_a_process_is_described_by_its_peaks_and_its_last_values() -> None:
    # Given
    prefix = "pulsar_proxy_topic_list_"
    watch = watched(
        "proxy",
        **{
            f"{prefix}heap_memory_limit_bytes": [50 * MB],
            f"{prefix}heap_memory_used_bytes": [0, 7, 3, 0],
            'floodgate_topic_list_memory_high_water_bytes{type="heap"}': [0, 9],
            f"{prefix}heap_timeout_total": [4, 4, 10],
            f"{prefix}heap_queue_size": [0, 12, 0],
            "floodgate_outbound_pending_bytes": [0, 5, 0],
            "floodgate_outbound_pending_bytes_peak": [0, 8],
            "process_resident_memory_bytes": [100, 400, 300],
            "process_cpu_seconds_total": [7.5, 8.0, 9.75],
        },
    )
    # When
    document = process_document(watch)
    # Then
    assert document["heap"] == {
        "limit_bytes": 50 * MB,
        "high_water_bytes": 9,
        "highest_scrape_bytes": 7,
        "final_bytes": 0,
    }
    assert (document["heap_timeouts"], document["heap_queue_peak"]) == (6, 12)
    assert document["outbound_pending_peak_bytes"] == 8
    assert document["resident_over_first_scrape_bytes"] == 300
    assert document["resident_highest_scrape_bytes"] == 400
    assert document["cpu_seconds"] == 2.25


def test_a_server_without_floodgates_own_figures_leaves_them_unknown() -> None:
    # Given what a Pulsar 4.2 exposes, and no process id
    prefix = "pulsar_broker_topic_list_"
    watch = watched(
        **{
            f"{prefix}heap_memory_limit_bytes": [MB],
            f"{prefix}heap_memory_used_bytes": [0, 7, 0],
            f"{prefix}heap_timeout_total": [0, 0],
            f"{prefix}heap_queue_size": [0, 3],
        }
    )
    # When
    document = process_document(watch)
    # Then only what a scrape met is a number
    assert document == {
        "heap": {
            "limit_bytes": MB,
            "high_water_bytes": None,
            "highest_scrape_bytes": 7,
            "final_bytes": 0,
        },
        "direct": None,
        "outbound_pending_peak_bytes": None,
        "resident_idle_bytes": None,
        "resident_peak_bytes": None,
        "resident_over_idle_bytes": None,
        "resident_over_first_scrape_bytes": None,
        "resident_highest_scrape_bytes": None,
        "heap_timeouts": 0,
        "direct_timeouts": None,
        "heap_queue_peak": 3,
        "direct_queue_peak": None,
        "again_seconds": None,
        "cpu_seconds": None,
        "descriptors_peak": None,
        "descriptors_limit": None,
    }


def test_scrapes_alone_do_not_stand_for_the_kernels_books() -> None:
    # Given a process whose id was not named
    document = process_document(watched(process_resident_memory_bytes=[100, 400, 300]))
    # Then
    assert document["resident_peak_bytes"] is None
    assert document["resident_over_idle_bytes"] is None
    assert document["resident_over_first_scrape_bytes"] == 300


def test_what_the_kernel_counted_goes_before_what_was_scraped() -> None:
    watch = watched(process_resident_memory_bytes=[100, 400])
    watch.resident_idle_bytes, watch.resident_peak_bytes = 90, 500
    assert process_document(watch)["resident_over_idle_bytes"] == 410


@pytest.mark.parametrize("points", [0, 3])
def test_server_metrics_are_relative_to_t0(tmp_path, points: int) -> None:
    # Given
    server = ServerWatch([])
    server.processes["broker"] = watched(floodgate_x=[float(each) for each in range(points)])
    # When
    write_server_metrics(tmp_path / "m.parquet", server, offset_seconds=1.0)
    # Then
    written = pq.read_table(tmp_path / "m.parquet").to_pylist()
    assert [each["at_seconds"] for each in written] == [-1.0, 0.0, 1.0][:points]
    assert Counter(each["process"] for each in written) == ({"broker": points} if points else {})

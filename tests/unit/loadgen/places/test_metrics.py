"""A running run's figures, as read by Prometheus."""

import socket
import urllib.request

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from loadgen.commands.run import run
from loadgen.engine.rows import Outcome, RequestRow
from loadgen.engine.totals import BUCKETS, Totals
from loadgen.errors import UsageError
from loadgen.places.metrics import RunCollector, exported

TOTALS = Totals(phase="measure", connected=3, bytes=500)
TOTALS.end(RequestRow(0, "all", "", "list", "a/b", 1.0, done=1.2, outcome=Outcome.ANSWERED))
TOTALS.end(RequestRow(0, "all", "", "list", "a/b", 1.0, done=1.2, outcome=Outcome.REFUSED))
TOTALS.clients["all connection-lost"] = 2
OF_ALL = 'run="mine",scenario="storm"'


def page() -> str:
    collector, registry = RunCollector("mine", "storm"), CollectorRegistry()
    collector.totals = TOTALS
    registry.register(collector)
    return generate_latest(registry).decode()


@pytest.mark.parametrize(
    "line",
    [
        'loadgen_requests_total{group="all",operation="list",outcome="answered",%s} 1.0',
        'loadgen_requests_total{group="all",operation="list",outcome="refused",%s} 1.0',
        'loadgen_client_events_total{group="all",%s,what="connection-lost"} 2.0',
        "loadgen_connections_total{%s} 3.0",
        "loadgen_received_bytes_total{%s} 500.0",
        'loadgen_phase{phase="measure",%s} 1.0',
        'loadgen_response_seconds_count{group="all",%s} 1.0',
    ],
)
def test_totals_are_exported_with_labels_of_run_scenario_and_group(line: str) -> None:
    assert line % OF_ALL in page().splitlines()


def test_a_response_counts_in_every_histogram_bucket_above_its_time() -> None:
    edges = {
        float(line.partition('le="')[2].partition('"')[0]): float(line.rpartition(" ")[2])
        for line in page().splitlines()
        if line.startswith("loadgen_response_seconds_bucket")
    }
    assert len(edges) == BUCKETS
    assert {count for edge, count in edges.items() if edge < 0.2} == {0.0}
    assert {count for edge, count in edges.items() if edge > 0.5} == {1.0}


def test_the_metrics_port_serves_the_latest_totals_until_the_block_ends() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url, seen = f"http://127.0.0.1:{port}/metrics", []
    with exported("mine", "storm", port, seen.append) as take:
        take(TOTALS)
        with urllib.request.urlopen(url) as response:
            assert "loadgen_connections_total" in response.read().decode()
    assert seen == [TOTALS]
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url)


def test_an_occupied_metrics_port_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"--metrics-port {port} cannot be used"):
            exported("mine", "storm", port, print).__enter__()


def test_without_a_metrics_port_totals_are_only_passed_on() -> None:
    seen = []
    with exported("mine", "storm", None, seen.append) as take:
        take(TOTALS)
    assert seen == [TOTALS]


def test_the_metrics_port_listens_only_on_the_loopback_as_documented() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with exported("mine", "storm", port, print), pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.2:{port}/metrics")
    assert "at this port of the loopback" in (run.__doc__ or "")

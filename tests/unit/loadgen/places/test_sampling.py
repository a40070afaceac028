from __future__ import annotations

import http.server
import threading
from contextlib import contextmanager

import pytest

from loadgen.errors import UsageError
from loadgen.servers import scrape
from loadgen.servers.kernel_books import KernelBooks
from loadgen.places.sampling import ServerWatch, kept_samples
from loadgen.servers.series import ScrapedSeries, ScrapeTarget

PAGE = """# HELP pulsar_broker_topic_list_heap_memory_used_bytes x
# TYPE pulsar_broker_topic_list_heap_memory_used_bytes gauge
pulsar_broker_topic_list_heap_memory_used_bytes{cluster="standalone"} 10240.0
pulsar_broker_topic_list_heap_wait_time_ms{cluster="standalone",quantile="0.5"} NaN
pulsar_broker_topic_list_heap_wait_time_ms{cluster="standalone",quantile="1.0"} 2.5 1700000000000
floodgate_topic_list_memory_high_water_bytes{type="heap",cluster="a,b"} 7
process_cpu_seconds_total 1.5e3
pulsar_topics_count{cluster="standalone"} 3
"""


def test_kept_samples_lose_the_cluster_and_keep_other_labels() -> None:
    assert dict(kept_samples(PAGE)) == {
        "pulsar_broker_topic_list_heap_memory_used_bytes": 10240.0,
        'pulsar_broker_topic_list_heap_wait_time_ms{quantile="1.0"}': 2.5,
        'floodgate_topic_list_memory_high_water_bytes{type="heap"}': 7.0,
        "process_cpu_seconds_total": 1500.0,
    }


def test_a_series_stays_bounded_and_keeps_its_peak(monkeypatch) -> None:
    # Given
    monkeypatch.setattr("loadgen.servers.series._MOST_POINTS", 100)
    series = ScrapedSeries()
    # When
    for at in range(1000):
        series.add(at, 5000.0 if at == 501 else at)
    # Then
    assert len(series.at) == len(series.values) <= 100
    assert series.peak == 5000.0
    assert list(series.at) == sorted(series.at)


@contextmanager
def metrics_server(pages: list[str]):
    """Serve the pages one after the other, the last one again and again."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.pop(0) if len(pages) > 1 else pages[0]
            self.send_response(200 if self.path == "/metrics/" else 404)
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_a_server_is_watched_until_its_memory_came_back(monkeypatch) -> None:
    # Given a server that gives its memory back after some looks
    monkeypatch.setattr(scrape, "SCRAPE_SECONDS", 0.001)
    used = "pulsar_broker_topic_list_heap_memory_used_bytes 5\n"
    pages = [used] * 20 + [used.replace("5", "0")]
    # When the storm is over at once
    with metrics_server(pages) as url, ServerWatch([ScrapeTarget("broker", url)]) as watch:
        pass
    # Then
    seen = watch.processes["broker"]
    assert seen.peak("pulsar_broker_topic_list_heap_memory_used_bytes") == 5
    assert seen.last("pulsar_broker_topic_list_heap_memory_used_bytes") == 0
    assert len(list(watch.points(lambda at: at))) > 20


USED = "pulsar_broker_topic_list_direct_memory_used_bytes"


@pytest.mark.parametrize(
    ("pages", "held"),
    [
        (["0", "7"], 7),  # never given back
        (["0", "7", "7", "0"], 0),
        (["5", "7"], 0),  # others use the server: they held some before the run
    ],
)
def test_what_a_server_still_holds_when_all_have_left_is_found(
    monkeypatch, pages: list[str], held: int
) -> None:
    # Given
    monkeypatch.setattr(scrape, "SCRAPE_SECONDS", 0.001)
    told = [f"{USED} {each}\n" for each in pages]
    # When
    with metrics_server(told) as url, ServerWatch([ScrapeTarget("broker", url)]) as watch:
        pass
    # Then
    assert watch.processes["broker"].held_bytes("direct") == held
    assert watch.processes["broker"].held_bytes("heap") == 0


def test_a_server_that_cannot_be_asked_any_more_is_not_blamed(monkeypatch) -> None:
    # Given a server that dies while it holds memory
    monkeypatch.setattr(scrape, "SCRAPE_SECONDS", 0.001)
    with metrics_server([f"{USED} 0\n", f"{USED} 7\n"]) as url:
        watch = ServerWatch([ScrapeTarget("broker", url)])
        watch.__enter__()
        seen = watch.processes["broker"]
        seen._scrape()
    # When
    watch.__exit__()
    # Then
    assert seen.last(USED) == 7
    assert seen.held_bytes("direct") == 0


def test_an_address_without_metrics_is_refused_before_the_storm() -> None:
    with (
        metrics_server(["x"]) as url,
        pytest.raises(UsageError, match=r"404: Not Found\): check --proxy-admin-url"),
        ServerWatch([ScrapeTarget("proxy", f"{url}/elsewhere")]),
    ):
        pass
    with (
        pytest.raises(UsageError, match=r"\(Connection refused\): check --proxy-admin-url"),
        ServerWatch([ScrapeTarget("proxy", url)]),
    ):
        pass


def test_a_server_that_comes_again_as_another_process_tells_of_itself(monkeypatch) -> None:
    # Given a process of which the kernel knows nothing any more, and a page of what took its place
    class Gone(KernelBooks):
        def reset_high_water_mark(self) -> int:
            return 7

        def samples(self) -> dict[str, float]:
            looks.append(1)
            if len(looks) == 3:
                noticed.set()
            if len(looks) > 1:
                raise UsageError("it has ended")
            return {"process_resident_memory_bytes": 7.0}

    looks, noticed = [], threading.Event()
    monkeypatch.setattr(scrape, "KernelBooks", Gone)
    monkeypatch.setattr(scrape, "SCRAPE_SECONDS", 0.001)
    page = "process_resident_memory_bytes 5\n"
    # When
    with metrics_server([page]) as url, ServerWatch([ScrapeTarget("broker", url, 1)]) as watch:
        assert noticed.wait(10)
    # Then
    series = watch.processes["broker"].series["process_resident_memory_bytes"]
    assert (series.values[0], series.values[-1]) == (7.0, 5.0)

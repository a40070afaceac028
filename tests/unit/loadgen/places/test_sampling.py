import http.server
import os
import threading
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from loadgen.errors import UsageError
from loadgen.places import sampling
from loadgen.places.sampling import KernelBooks, Samples, ServerWatch, kept_samples
from loadgen.results.tables import SAMPLES

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


def points(samples: Samples, metric: str, process: str = "broker") -> list[float]:
    return samples.series(process, metric)[1]


def test_a_series_of_samples_keeps_a_bounded_number_of_points(monkeypatch) -> None:
    monkeypatch.setattr(sampling, "_MOST_POINTS", 100)
    samples = Samples(["broker"])
    for at in range(1000):
        samples.add("broker", at, {"x": at})
    seen = points(samples, "x")
    assert len(seen) <= 100
    assert seen == sorted(seen)
    assert seen[-1] == 999


def test_samples_are_written_with_seconds_of_the_run_and_names_of_figures(tmp_path) -> None:
    samples = Samples(["broker", "proxy"])
    samples.add("proxy", 12.5, {"process_open_fds": 7.0, "floodgate_x": 1.0})
    samples.write(str(tmp_path), "mine", t0=10.0, t0_epoch_seconds=1000.0)
    table = pq.read_table(tmp_path / "samples" / "part-00000.parquet")
    assert table.schema.names == SAMPLES.names
    rows = table.to_pylist()
    assert [(row["metric"], row["figure"], row["value"]) for row in rows] == [
        ("process_open_fds", "descriptors", 7.0),
        ("floodgate_x", None, 1.0),
    ]
    assert {(row["run"], row["process"], row["seconds"]) for row in rows} == {
        ("mine", "proxy", 2.5)
    }
    assert rows[0]["at"].timestamp() == 1002.5


@contextmanager
def metrics_server(pages: list[str]):
    """Serve the pages in order, the last page repeatedly."""

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


USED = "pulsar_broker_topic_list_direct_memory_used_bytes"


def test_a_server_is_sampled_until_its_memory_is_released(monkeypatch) -> None:
    # Given a server that frees memory after some readings
    monkeypatch.setattr(sampling, "SAMPLE_SECONDS", 0.001)
    pages = [f"{USED} 5\n"] * 20 + [f"{USED} 0\n"]
    # When the run ends immediately
    with metrics_server(pages) as url, ServerWatch({"broker": url}, {}) as watch:
        pass
    seen = points(watch, USED)
    assert (max(seen), seen[-1]) == (5, 0)
    assert len(seen) > 20
    assert watch.seen_at_the_end == {"broker"}


def test_memory_that_a_server_never_releases_is_its_last_sample(monkeypatch) -> None:
    monkeypatch.setattr(sampling, "SAMPLE_SECONDS", 0.001)
    pages = [f"{USED} 0\n", f"{USED} 7\n"]
    with metrics_server(pages) as url, ServerWatch({"broker": url}, {}) as watch:
        pass
    assert watch.figures("broker") == {"direct.used": 7}
    assert watch.holds_memory("broker")


def test_an_unreachable_server_does_not_count_as_seen_at_the_end(monkeypatch) -> None:
    monkeypatch.setattr(sampling, "SAMPLE_SECONDS", 0.001)
    with metrics_server([f"{USED} 7\n"]) as url:
        watch = ServerWatch({"broker": url}, {})
        watch.__enter__()
    watch.__exit__()
    assert not watch.seen_at_the_end


def test_an_admin_url_without_metrics_is_refused_before_the_run() -> None:
    with (
        metrics_server(["x"]) as url,
        pytest.raises(UsageError, match=r"404: Not Found\): check --admin-url proxy="),
        ServerWatch({"proxy": f"{url}/elsewhere"}, {}),
    ):
        pass
    with (
        pytest.raises(UsageError, match=r"\(Connection refused\): check --admin-url proxy="),
        ServerWatch({"proxy": url}, {}),
    ):
        pass


def test_a_restarted_server_is_sampled_by_its_own_metrics_page(monkeypatch) -> None:
    # Given a process that has vanished from the kernel, and a page of the successor
    class Gone(KernelBooks):
        def reset_high_water_mark(self) -> None:
            pass

        def samples(self) -> dict[str, float]:
            looks.append(1)
            if len(looks) == 2:
                noticed.set()
            if len(looks) > 1:
                raise UsageError("it has ended")
            return {"process_resident_memory_bytes": 7.0}

    looks, noticed = [], threading.Event()
    monkeypatch.setattr(sampling, "KernelBooks", Gone)
    monkeypatch.setattr(sampling, "SAMPLE_SECONDS", 0.001)
    page = "process_resident_memory_bytes 5\n"
    with metrics_server([page]) as url, ServerWatch({"broker": url}, {"broker": 1}) as watch:
        assert noticed.wait(10)
    seen = points(watch, "process_resident_memory_bytes")
    assert (seen[0], seen[-1]) == (7.0, 5.0)


def process(directory: Path, status: str) -> KernelBooks:
    """Return a process whose name misleads parsers splitting at blanks."""
    (directory / "42" / "fd").mkdir(parents=True)
    for number in range(3):
        (directory / "42" / "fd" / str(number)).touch()
    ticks = os.sysconf("SC_CLK_TCK")
    before = "S 1 1 1 0 -1 4194560 0 0 0 0"
    stat = f"42 (a ) b) {before} {3 * ticks} {ticks // 2} 0 0 20 0 1"
    (directory / "42" / "stat").write_text(stat)
    (directory / "42" / "status").write_text(status)
    return KernelBooks("proxy", 42, directory)


def test_kernel_figures_of_a_process_have_the_names_of_process_metrics(tmp_path) -> None:
    books = process(tmp_path, "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n")
    books.reset_high_water_mark()
    assert (tmp_path / "42" / "clear_refs").read_text() == "5"
    assert books.samples() == {
        "process_resident_memory_bytes": 1024 * 1024,
        "process_resident_memory_high_water_bytes": 2048 * 1024,
        "process_cpu_seconds_total": 3.5,
        "process_open_fds": 3,
    }


def test_a_missing_process_is_reported_by_number_and_role(tmp_path) -> None:
    with pytest.raises(UsageError, match=r"process 42, the proxy, cannot"):
        KernelBooks("proxy", 42, tmp_path).reset_high_water_mark()


def test_a_process_without_memory_is_reported_as_ended(tmp_path) -> None:
    with pytest.raises(UsageError, match="has ended"):
        process(tmp_path, "Name:\tzombie\n").samples()


@pytest.mark.parametrize(("took", "pause"), [(0.001, sampling.SAMPLE_SECONDS), (0.4, 8.0)])
def test_scrapes_take_at_most_a_twentieth_of_a_servers_time(took, pause, monkeypatch) -> None:
    monkeypatch.setattr(ServerWatch, "_scrape", lambda *_: took)
    paused: list[float] = []
    watch = ServerWatch({"broker": "http://127.0.0.1:1"}, {})
    monkeypatch.setattr(watch._over, "wait", lambda seconds: not paused.append(seconds))
    with watch:
        pass
    assert paused[0] == pytest.approx(pause)

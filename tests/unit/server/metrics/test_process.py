"""Metrics of the process and the event loop."""

from prometheus_client import CollectorRegistry

from limiter.metrics.prometheus import Instruments
from server.instruments import EVENT_LOOP, HEAP, PYTHON
from server.metrics.process import EventLoopLag, ProcessMetrics
from server.tasks.freed_memory import HeapSize
from tests.support.clocks.manual_clock import ManualClock
from tests.support.processes.samples import exposition, read_samples


def test_process_samples_have_the_names_of_a_real_broker_and_its_cluster() -> None:
    registry = CollectorRegistry()
    registry.register(ProcessMetrics("c1"))
    samples = {sample.name: sample for sample in read_samples(exposition(registry).decode())}
    assert set(samples) == {
        "process_virtual_memory_bytes",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
        "process_cpu_seconds_total",
        "process_max_fds",
        "process_open_fds",
    }
    assert all(sample.labels == {"cluster": "c1"} for sample in samples.values())
    assert samples["process_cpu_seconds_total"].type == "counter"
    assert samples["process_resident_memory_bytes"].value > 1_000_000


def test_heap_memory_in_use_and_free_are_reported_separately() -> None:
    registry = CollectorRegistry()
    size = HeapSize(in_use_bytes=7, free_bytes=5)
    registry.register(Instruments(HEAP, lambda: size, {"cluster": "c1"}))
    registry.register(Instruments(PYTHON, object, {"cluster": "c1"}))
    samples = list(read_samples(exposition(registry).decode()))
    heap = {s.labels["state"]: s.value for s in samples if s.name == "floodgate_heap_bytes"}
    assert heap == {"in_use": 7, "free": 5}
    assert [s.value > 1_000 for s in samples if s.name == "floodgate_python_blocks"] == [True]


def test_a_late_event_loop_is_visible_in_the_histogram() -> None:
    clock = ManualClock()
    lag = EventLoopLag(clock)
    registry = CollectorRegistry()
    registry.register(Instruments(EVENT_LOOP, lag.buckets, {"cluster": "c1"}))
    lag.start()
    # Five punctual callbacks, then some 60 ms late, then none
    clock.advance(0.55)
    clock.advance(0.35, late_seconds=0.06)
    lag.stop()
    lag.stop()
    clock.advance(10.0)
    samples = read_samples(exposition(registry).decode())
    buckets = {s.labels["le"]: s.value for s in samples if s.name.endswith("_bucket")}
    assert buckets["0.001"] == 5
    assert buckets["0.05"] == 5
    assert buckets["0.1"] == buckets["+Inf"] == 7
    sums = {s.name: s.value for s in samples}
    assert sums["floodgate_event_loop_lag_seconds_count"] == 7
    assert abs(sums["floodgate_event_loop_lag_seconds_sum"] - 0.12) < 1e-6

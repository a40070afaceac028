"""Metrics reach a collector by OTLP, and a missing collector harms no process."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, ResourceMetrics

from broker.service import BrokerService
from limiter.memory.dual_limiter import AsyncDualMemoryLimiter, LimitType, MemoryLimit
from limiter.metrics.outcome_counts import OutcomeCounts
from limiter.permits.permit import AcquireOutcome
from server.errors import ConfigError
from server.metrics.otel_export import MetricExport
from server.metrics.otel_settings import MetricsExporter, TelemetrySettings
from tests.support.clocks.manual_clock import ManualClock
from tests.support.processes.cluster import broker_config, cluster, topic_names, until
from tests.support.processes.server_process import REPOSITORY

NAMESPACE = "public/default"
TOPICS = {NAMESPACE: topic_names(NAMESPACE, 3)}
NOBODY = "http://127.0.0.1:1/v1/metrics"


class Collector:
    """Takes OTLP over HTTP in the test's own loop, so a blocking export would hang."""

    def __init__(self) -> None:
        self.url = ""
        self.received: list[ResourceMetrics] = []
        self.headers: list[dict[str, str]] = []

    async def take(self, request: web.Request) -> web.Response:
        body = ExportMetricsServiceRequest.FromString(await request.read())
        self.received.extend(body.resource_metrics)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        answer = ExportMetricsServiceResponse().SerializeToString()
        return web.Response(body=answer, content_type="application/x-protobuf")

    def of(self, service: str) -> list[ResourceMetrics]:
        return [one for one in self.received if attributes(one)["service.name"] == service]


@asynccontextmanager
async def collector() -> AsyncIterator[Collector]:
    one = Collector()
    app = web.Application()
    app.router.add_post("/v1/metrics", one.take)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        one.url = f"http://127.0.0.1:{port}"
        yield one
    finally:
        await runner.cleanup()


def attributes(resource: ResourceMetrics) -> dict[str, str]:
    return {one.key: one.value.string_value for one in resource.resource.attributes}


def metrics(resource: ResourceMetrics) -> dict[str, Metric]:
    return {one.name: one for scope in resource.scope_metrics for one in scope.metrics}


async def test_broker_and_proxy_export_a_last_reading_when_they_drain(monkeypatch) -> None:
    async with collector() as one:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", one.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=value")
        async with cluster(TOPICS, both={"clusterName": "here"}) as parts:
            await parts.client().topics_of_namespace(NAMESPACE)
        assert {attributes(each)["pulsar.cluster"] for each in one.received} == {"here"}
        for service in ("floodgate-broker", "floodgate-proxy"):
            (resource,) = one.of(service)
            seen = metrics(resource)
            (used,) = seen["topic.list.heap.memory.used"].gauge.data_points
            assert (used.WhichOneof("value"), used.as_double) == ("as_double", 0.0)
            (places,) = seen["topic.list.heap.queue.max.size"].gauge.data_points
            assert (places.WhichOneof("value"), places.as_int) == ("as_int", 10_000)
            (waits,) = seen["topic.list.heap.wait.time"].histogram.data_points
            assert waits.count == sum(waits.bucket_counts) >= 1
            assert seen["topic.list.heap.wait.time"].unit == "s"
            assert seen["topic.list.heap.timeout.total"].sum.is_monotonic
            assert not seen["topic.list.heap.queue.size"].sum.is_monotonic
        assert [each["x-key"] for each in one.headers] == ["value", "value"]


async def test_metrics_are_exported_at_their_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    async with collector() as one:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", f"{one.url}/v1/metrics")
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "15000")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
        clock = ManualClock()
        async with BrokerService(broker_config({}), clock=clock) as broker:
            permit = await broker.limiter.acquire(LimitType.DIRECT_MEMORY, 4096)
            clock.advance(14.9)
            before = len(one.received)
            clock.advance(0.2)
            await until(lambda: len(one.received) == 1)
            broker.limiter.release(permit)
            clock.advance(15.0)
            await until(lambda: len(one.received) == 2)
        assert before == 0
        assert len(one.of("mine")) == len(one.received) == 3
        used = [
            metrics(each)["topic.list.direct.memory.used"].gauge.data_points[0].as_double
            for each in one.received
        ]
        assert used == [4096.0, 0.0, 0.0]


async def test_all_waits_of_zero_seconds_in_a_batch_are_exported() -> None:
    async with collector() as one:
        clock = ManualClock()
        tally = OutcomeCounts(clock)
        budget = MemoryLimit(1000, 10, 25.0)
        limiter = AsyncDualMemoryLimiter(budget, budget, clock)
        url = f"{one.url}/v1/metrics"
        settings = TelemetrySettings(MetricsExporter.OTLP, url, 60.0, 10.0)
        export = MetricExport(settings, {}, limiter, tally, None, clock)
        tally.observe(LimitType.HEAP_MEMORY, AcquireOutcome.GRANTED, 0.0, 1000)
        await export.close()
        (reading,) = one.received
        (waits,) = metrics(reading)["topic.list.heap.wait.time"].histogram.data_points
        assert waits.count == waits.bucket_counts[0] == 1000


async def test_an_unreachable_collector_is_logged_once(monkeypatch, caplog) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", NOBODY)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "500")
    clock = ManualClock()
    async with BrokerService(broker_config({}), clock=clock) as broker:
        for _ in range(3):
            clock.advance(60.0)
        await until(lambda: caplog.records)
        permit = await broker.limiter.acquire(LimitType.HEAP_MEMORY, 1)
        broker.limiter.release(permit)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "WARNING",
            f"metrics do not reach {NOBODY}: Connection refused; "
            "logged once, and sending continues",
        )
    ]


async def test_a_refusal_by_the_collector_is_logged_with_its_answer(monkeypatch, caplog) -> None:
    async with collector() as one:
        url = f"{one.url}/elsewhere"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", url)
        async with BrokerService(broker_config({})):
            pass
        (record,) = caplog.records
        assert f"metrics do not reach {url}: it answered 404 Not Found;" in record.getMessage()


async def test_the_console_exporter_writes_to_standard_error(monkeypatch, capsys) -> None:
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "console")
    async with BrokerService(broker_config({})):
        pass
    captured = capsys.readouterr()
    assert captured.out == ""
    assert '"topic.list.heap.memory.used"' in captured.err


async def test_an_invalid_otlp_endpoint_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")
    with pytest.raises(ConfigError, match="OTEL_EXPORTER_OTLP_ENDPOINT must be a URL"):
        async with BrokerService(broker_config({})):
            pass


SERVE_AND_TELL = """
import asyncio, json, sys, threading
from broker.service import BrokerService
from server import loop
from tests.support.processes.cluster import broker_config

async def main():
    async with BrokerService(broker_config({})):
        threads = [one.name for one in threading.enumerate()]
        imported = [name for name in sys.modules if name.startswith(("opentelemetry", "requests"))]
        print(json.dumps({"threads": threads, "imported": imported}))

loop.run(main())
"""


async def test_metric_export_is_off_by_default_without_imports_or_threads() -> None:
    answer = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", SERVE_AND_TELL],
        cwd=REPOSITORY,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=True,
    )
    told = json.loads(answer.stdout)
    assert told["imported"] == []
    assert "metric-export" not in told["threads"]

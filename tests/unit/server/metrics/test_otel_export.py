"""Readings are sent from a thread: in order, bounded, with a single warning on failure."""

import asyncio
import logging
import threading
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData

from server.metrics.otel_export import CLOSE_SECONDS, QUEUED_READINGS, Sender
from tests.support.clocks.manual_clock import ManualClock
from tests.support.processes.cluster import until

GIVE_UP_SECONDS = 20.0
SUCCESS, FAILURE = MetricExportResult.SUCCESS, MetricExportResult.FAILURE


class ScriptedExporter(MetricExporter):
    """Scripted answers, then success; may be held."""

    def __init__(self, answers: Sequence[MetricExportResult] = ()) -> None:
        super().__init__()
        self.exported: list[MetricsData] = []
        self.threads: set[str] = set()
        self.shutdowns = 0
        self.held_up = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()
        self._answers = list(answers)

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 0, **_: object
    ) -> MetricExportResult:
        self.held_up.set()
        assert self.go_on.wait(GIVE_UP_SECONDS)
        self.exported.append(metrics_data)
        self.threads.add(threading.current_thread().name)
        return self._answers.pop(0) if self._answers else SUCCESS

    def force_flush(self, timeout_millis: float = 0) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 0, **_: object) -> None:
        self.shutdowns += 1
        self.go_on.set()


def readings(count: int) -> list[MetricsData]:
    return [MetricsData([]) for _ in range(count)]


def sender(exporter: ScriptedExporter) -> Sender:
    return Sender(exporter, lambda: "no route", "http://c:4318/v1/metrics")


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(record.levelno, record.getMessage()) for record in caplog.records]


async def test_readings_are_exported_in_order_by_a_thread_that_ends() -> None:
    exporter, sent = ScriptedExporter(), readings(3)
    sending = sender(exporter)
    for reading in sent:
        sending.send(reading)
    await sending.close(ManualClock())
    assert [id(one) for one in exporter.exported] == [id(one) for one in sent]
    assert exporter.threads == {"metric-export"}
    assert exporter.shutdowns == 1
    await until(lambda: not alive())


async def test_the_oldest_waiting_reading_is_dropped_beyond_the_bound() -> None:
    exporter, sent = ScriptedExporter(), readings(QUEUED_READINGS + 3)
    exporter.go_on.clear()
    sending = sender(exporter)
    sending.send(sent[0])
    await until(exporter.held_up.is_set)
    for reading in sent[1:]:
        sending.send(reading)
    exporter.go_on.set()
    await until(lambda: len(exporter.exported) == 1 + QUEUED_READINGS)
    await sending.close(ManualClock())
    expected = [sent[0], *sent[3:]]
    assert [id(one) for one in exporter.exported] == [id(one) for one in expected]


async def test_an_outage_and_its_end_are_each_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "server.metrics.otel_export")
    exporter = ScriptedExporter([SUCCESS, FAILURE, FAILURE, FAILURE, SUCCESS, FAILURE])
    sending = sender(exporter)
    for number, reading in enumerate(readings(6), start=1):
        sending.send(reading)
        await until(lambda expected=number: len(exporter.exported) == expected)
    await until(lambda: len(caplog.records) == 3)
    await sending.close(ManualClock())
    away = (
        logging.WARNING,
        "metrics do not reach http://c:4318/v1/metrics: no route; "
        "logged once, and sending continues",
    )
    assert said(caplog) == [
        away,
        (logging.INFO, "metrics reach http://c:4318/v1/metrics again"),
        away,
    ]


async def test_a_hanging_collector_delays_a_drain_for_at_most_two_seconds(caplog) -> None:
    clock, exporter = ManualClock(), ScriptedExporter([FAILURE])
    exporter.go_on.clear()
    sending = sender(exporter)
    sending.send(readings(1)[0])
    await until(exporter.held_up.is_set)
    closing = asyncio.create_task(sending.close(clock))
    await asyncio.sleep(0)
    clock.advance(CLOSE_SECONDS - 0.001)
    await asyncio.sleep(0)
    too_early = closing.done()
    clock.advance(0.001)
    await closing
    assert not too_early
    assert exporter.shutdowns == 1
    await until(lambda: not alive())
    assert said(caplog) == [
        (
            logging.WARNING,
            "the last metrics did not reach http://c:4318/v1/metrics in time: no route",
        )
    ]


async def test_a_drain_does_not_wait_for_a_collector_already_failing() -> None:
    exporter = ScriptedExporter([FAILURE])
    sending = sender(exporter)
    sending.send(readings(1)[0])
    await until(lambda: sending.failing)
    exporter.go_on.clear()
    sending.send(readings(1)[0])
    # This clock stands still
    await sending.close(ManualClock())
    assert exporter.shutdowns == 1
    await until(lambda: not alive())


def alive() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name == "metric-export"]

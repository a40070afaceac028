"""Export of the topic-list metrics to an OpenTelemetry collector; imported only if enabled.

The limiter belongs to the event loop, so the meter is read there, in an event-loop iteration of its
own (about a millisecond). Sending happens in a thread, for as long as the collector takes. Bound:
four readings wait to be sent; the oldest is dropped for a newer reading.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import requests
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    InMemoryMetricReader,
    MetricExportResult,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource

from limiter.clock import Timer, deadline
from limiter.metrics.otel import RATE_LIMITS, TopicListInstruments, create
from proto.version import VERSION
from server.metrics.otel_settings import MetricsExporter

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.sdk.metrics.export import MetricExporter, MetricsData

    from limiter.clock import Clock
    from limiter.flow.totals import FlowTotals
    from limiter.metrics.outcome_counts import OutcomeCounts
    from limiter.metrics.topic_list import HasStatistics
    from server.metrics.otel_settings import TelemetrySettings

QUEUED_READINGS = 4
CLOSE_SECONDS = 2.0
"""Seconds for sending the last reading when the process drains."""

logger = logging.getLogger(__name__)


class MetricExport:
    """Reads the memory limiter's metrics periodically, and exports each reading.

    Args:
        settings: Where and how often metrics are exported.
        service: The service's attributes, overridden by ``OTEL_*`` variables.
        limiter: The measured limiter.
        tally: Counts the outcomes of requests for memory.
        flow: Flow control totals; None at a proxy, without such an instrument.
        clock: Arms the timer.

    The mutable state is the armed timer and the sender's queue.
    """

    def __init__(
        self,
        settings: TelemetrySettings,
        service: dict[str, str],
        limiter: HasStatistics,
        tally: OutcomeCounts,
        flow: FlowTotals | None,
        clock: Clock,
    ) -> None:
        self._interval_seconds = settings.interval_seconds
        self._clock = clock
        exporter, problem = _exporter(settings)
        self._reader = InMemoryMetricReader(
            exporter._preferred_temporality, exporter._preferred_aggregation
        )
        provider = MeterProvider([self._reader], _resource(service), shutdown_on_exit=False)
        meter = provider.get_meter("floodgate", VERSION)
        self._instruments = TopicListInstruments(meter, limiter, tally)
        if flow is not None:
            create(meter, RATE_LIMITS, lambda: flow)
        self._sender = Sender(exporter, problem, settings.destination)
        self._timer = Timer(clock)
        self._arm()

    async def close(self) -> None:
        """Export the metrics a last time and end the thread, within 2 s."""
        self._timer.stop()
        self._send()
        await self._sender.close(self._clock)

    def _arm(self) -> None:
        self._timer.after(self._interval_seconds, self._fire)

    def _fire(self) -> None:
        self._arm()
        self._send()

    def _send(self) -> None:
        read = self._reader.get_metrics_data()
        if read is not None:
            self._sender.send(self._instruments.completed(read))


class Sender:
    """A thread that exports readings of metrics; of successive failures it logs only the first.

    Args:
        exporter: Sends, with retries within its timeout.
        problem: Returns the reason of the last failure.
        destination: The destination, for the log.

    Attributes:
        failing: Whether the last reading could not be sent.
    """

    def __init__(
        self, exporter: MetricExporter, problem: Callable[[], str], destination: str
    ) -> None:
        self._exporter = exporter
        self._problem = problem
        self._destination = destination
        self.failing = False
        self._queue: queue.Queue[MetricsData | None] = queue.Queue(QUEUED_READINGS)
        self._loop = asyncio.get_running_loop()
        self._finished = asyncio.Event()
        # A daemon: a hanging collector must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="metric-export", daemon=True)
        self._thread.start()

    def send(self, reading: MetricsData | None) -> None:
        """Queue a reading for export, dropping the oldest if full; None ends the thread."""
        while True:
            with suppress(queue.Full):
                return self._queue.put_nowait(reading)
            with suppress(queue.Empty):
                self._queue.get_nowait()

    async def close(self, clock: Clock) -> None:
        """Export the queued readings, within 2 s, and end the thread.

        A collector that is already unreachable is not waited for.
        """
        self.send(None)
        try:
            if not self.failing:
                async with deadline(clock, CLOSE_SECONDS):
                    await self._finished.wait()
        except TimeoutError:
            logger.warning(
                "the last metrics did not reach %s in time: %s",
                self._destination,
                self._problem(),
            )
            self.failing = True
        self._exporter.shutdown()

    def _run(self) -> None:
        try:
            while (reading := self._queue.get()) is not None:
                self._export(reading)
        finally:
            # The loop may have ended.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._finished.set)

    def _export(self, reading: MetricsData) -> None:
        sent = self._exporter.export(reading) is MetricExportResult.SUCCESS
        if sent and self.failing:
            logger.info("metrics reach %s again", self._destination)
        elif not sent and not self.failing:
            logger.warning(
                "metrics do not reach %s: %s; logged once, and sending continues",
                self._destination,
                self._problem(),
            )
        self.failing = not sent


class _Session(requests.Session):
    """An HTTP session that remembers the reason for its last failure."""

    problem = "it did not answer"

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:  # noqa: ANN401
        try:
            response = super().request(*args, **kwargs)
        except requests.RequestException as error:
            self.problem = _innermost(error)
            raise
        if not response.ok:
            self.problem = f"it answered {response.status_code} {response.reason}"
        return response


def _innermost(error: BaseException) -> str:
    while error.__context__ is not None:
        error = error.__context__
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _exporter(settings: TelemetrySettings) -> tuple[MetricExporter, Callable[[], str]]:
    if settings.exporter is MetricsExporter.CONSOLE:
        # Standard output belongs to the ready line.
        return ConsoleMetricExporter(sys.stderr), lambda: _Session.problem
    session = _Session()
    exporter = OTLPMetricExporter(
        settings.endpoint, timeout=settings.timeout_seconds, session=session
    )
    # From here on it would log each attempt: the sender logs the first failure.
    logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
    return exporter, lambda: session.problem


def _resource(service: dict[str, str]) -> Resource:
    """Return the OpenTelemetry resource that describes this server; ``OTEL_*`` variables win."""
    return Resource.create({**service, **OTELResourceDetector().detect().attributes})

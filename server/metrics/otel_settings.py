"""Settings of the export of metrics by OpenTelemetry, from standard ``OTEL_*`` variables.

Off by default, without importing OpenTelemetry. On when an endpoint is set, or
OTEL_METRICS_EXPORTER enables it. Each variable has its standard meaning, durations are
milliseconds; an empty variable counts as not set. The SDK reads all further variables, and logs
unusable values.

Source: OpenTelemetry specification, environment variables and OTLP exporter configuration.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from server.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_ENDPOINT = "http://localhost:4318"
METRICS_PATH = "/v1/metrics"
PROTOCOL = "http/protobuf"


class MetricsExporter(StrEnum):
    """The supported values of the variable OTEL_METRICS_EXPORTER."""

    OTLP = "otlp"
    CONSOLE = "console"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Where, and how often, OpenTelemetry exports metrics.

    Attributes:
        exporter: Where metrics go: to a collector (otlp) or to standard error (console).
        endpoint: The collector's URL for metrics.
        interval_seconds: The interval between exports.
        timeout_seconds: The timeout of an export, retries included.
    """

    exporter: MetricsExporter
    endpoint: str
    interval_seconds: float
    timeout_seconds: float

    @property
    def destination(self) -> str:
        """Where metrics are sent, for log lines; a password in the URL is left out."""
        if self.exporter is MetricsExporter.CONSOLE:
            return "standard error"
        url = urlsplit(self.endpoint)
        return url._replace(netloc=url.netloc.rpartition("@")[2], query="").geturl()


def telemetry_settings(environment: Mapping[str, str] | None = None) -> TelemetrySettings | None:
    """Return the export settings from ``OTEL_*`` variables; None if the export is off.

    Raises:
        ConfigError: Unusable values of required variables; lists every problem.
    """
    variables = _Variables(os.environ if environment is None else environment)
    settings = None
    if variables.choice(("OTEL_SDK_DISABLED",), ("false", "true")) == "false":
        settings = _settings(variables)
    if variables.problems:
        raise ConfigError(variables.problems)
    return settings


def _settings(variables: _Variables) -> TelemetrySettings | None:
    endpoint_set = any(variables.first(_otlp("ENDPOINT")))
    choices = ("otlp", "console", "none") if endpoint_set else ("none", "otlp", "console")
    exporter = MetricsExporter(variables.choice(("OTEL_METRICS_EXPORTER",), choices))
    if exporter is MetricsExporter.NONE:
        return None
    interval_seconds = variables.seconds(("OTEL_METRIC_EXPORT_INTERVAL",), 60.0)
    timeout_seconds = variables.seconds(("OTEL_METRIC_EXPORT_TIMEOUT",), 30.0)
    endpoint = ""
    if exporter is MetricsExporter.OTLP:
        endpoint = _endpoint(variables)
        timeout_seconds = min(timeout_seconds, variables.seconds(_otlp("TIMEOUT"), 10.0))
        variables.choice(_otlp("PROTOCOL"), (PROTOCOL,))
    return TelemetrySettings(exporter, endpoint, interval_seconds, timeout_seconds)


def _otlp(name: str) -> tuple[str, str]:
    return f"OTEL_EXPORTER_OTLP_METRICS_{name}", f"OTEL_EXPORTER_OTLP_{name}"


def _endpoint(variables: _Variables) -> str:
    name, value = variables.first(_otlp("ENDPOINT"))
    value = value or DEFAULT_ENDPOINT
    variables.check_url(name, value)
    if name == _otlp("ENDPOINT")[0]:
        return value
    return value.removesuffix("/") + METRICS_PATH


class _Variables:
    """Reads environment variables, and collects an error text for each unusable value.

    The sentences contain values, except URLs, which may contain secrets.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.problems: list[str] = []
        self._environment = environment

    def first(self, names: Sequence[str]) -> tuple[str, str]:
        """Return name and value of the first variable that is set; ("", "") if none is set."""
        for name in names:
            if value := self._environment.get(name, "").strip():
                return name, value
        return "", ""

    def choice(self, names: Sequence[str], values: Sequence[str]) -> str:
        name, value = self.first(names)
        if not value or value.lower() in values:
            return value.lower() or values[0]
        *others, last = values
        expected = f"{', '.join(others)} or {last}" if others else last
        self.problems.append(f"{name} must be {expected}, not {value!r}.")
        return values[0]

    def seconds(self, names: Sequence[str], default: float) -> float:
        name, value = self.first(names)
        if not value:
            return default
        if not (value.isascii() and value.isdigit() and int(value) > 0):
            self.problems.append(f"{name} must be a number of milliseconds above 0, not {value!r}.")
            return default
        return int(value) / 1000

    def check_url(self, name: str, value: str) -> None:
        try:
            url = urlsplit(value)
            right = url.scheme in ("http", "https") and url.hostname and url.port != 0
        except ValueError:
            right = False
        if not right:
            self.problems.append(f"{name} must be a URL such as {DEFAULT_ENDPOINT}.")

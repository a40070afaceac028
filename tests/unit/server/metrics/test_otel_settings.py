"""The OTEL_* variables: switch, target, and invalid values."""

import pytest

from server.errors import ConfigError
from server.metrics.otel_settings import MetricsExporter, TelemetrySettings, telemetry_settings

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
METRICS_ENDPOINT = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"


def settings_of(**variables: str) -> TelemetrySettings:
    settings = telemetry_settings(variables)
    assert settings is not None
    return settings


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {ENDPOINT: "", METRICS_ENDPOINT: " "},
        {ENDPOINT: "http://c:4318", "OTEL_METRICS_EXPORTER": "none"},
        {ENDPOINT: "http://c:4318", "OTEL_SDK_DISABLED": "True"},
        {"OTEL_METRICS_EXPORTER": "none", "OTEL_METRIC_EXPORT_INTERVAL": "wrong"},
        {"OTEL_SERVICE_NAME": "only-a-name"},
    ],
)
def test_no_metrics_are_sent_unless_configured(variables: dict[str, str]) -> None:
    assert telemetry_settings(variables) is None


@pytest.mark.parametrize(
    ("variables", "endpoint"),
    [
        ({ENDPOINT: "http://c:4318"}, "http://c:4318/v1/metrics"),
        ({ENDPOINT: "http://c:4318/otel/"}, "http://c:4318/otel/v1/metrics"),
        ({METRICS_ENDPOINT: "https://c/mine"}, "https://c/mine"),
        ({METRICS_ENDPOINT: "http://c/mine", ENDPOINT: "http://d"}, "http://c/mine"),
        ({"OTEL_METRICS_EXPORTER": "OTLP"}, "http://localhost:4318/v1/metrics"),
    ],
)
def test_an_endpoint_or_an_exporter_enables_sending(
    variables: dict[str, str], endpoint: str
) -> None:
    settings = settings_of(**variables)
    assert settings == TelemetrySettings(MetricsExporter.OTLP, endpoint, 60.0, 10.0)


def test_the_console_exporter_is_selected_by_name() -> None:
    settings = settings_of(OTEL_METRICS_EXPORTER="console")
    assert settings.exporter is MetricsExporter.CONSOLE
    assert settings.destination == "standard error"


def test_durations_are_in_milliseconds_and_the_shorter_timeout_applies() -> None:
    variables = {
        ENDPOINT: "http://c:4318",
        "OTEL_METRIC_EXPORT_INTERVAL": "5000",
        "OTEL_METRIC_EXPORT_TIMEOUT": "3000",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "4000",
    }
    settings = settings_of(**variables)
    shorter = settings_of(**variables, OTEL_EXPORTER_OTLP_METRICS_TIMEOUT="250")
    assert (settings.interval_seconds, settings.timeout_seconds) == (5.0, 3.0)
    assert shorter.timeout_seconds == 0.25


def test_a_password_in_the_endpoint_is_not_shown() -> None:
    settings = settings_of(**{METRICS_ENDPOINT: "https://me:secret@c:1/x?token=secret"})
    assert settings.destination == "https://c:1/x"
    assert settings.endpoint == "https://me:secret@c:1/x?token=secret"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("OTEL_SDK_DISABLED", "yes", "OTEL_SDK_DISABLED must be false or true, not 'yes'."),
        (
            "OTEL_METRICS_EXPORTER",
            "otlp,console",
            "OTEL_METRICS_EXPORTER must be otlp, console or none, not 'otlp,console'.",
        ),
        (
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "grpc",
            "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf, not 'grpc'.",
        ),
        (
            "OTEL_METRIC_EXPORT_INTERVAL",
            "-1",
            "OTEL_METRIC_EXPORT_INTERVAL must be a number of milliseconds above 0, not '-1'.",
        ),
        (
            "OTEL_EXPORTER_OTLP_TIMEOUT",
            "0",
            "OTEL_EXPORTER_OTLP_TIMEOUT must be a number of milliseconds above 0, not '0'.",
        ),
        (ENDPOINT, "collector:4318", f"{ENDPOINT} must be a URL such as http://localhost:4318."),
        (ENDPOINT, "http://:4318", f"{ENDPOINT} must be a URL such as http://localhost:4318."),
        (ENDPOINT, "http://c:99999", f"{ENDPOINT} must be a URL such as http://localhost:4318."),
    ],
)
def test_an_invalid_variable_is_reported_in_a_single_sentence(
    name: str, value: str, sentence: str
) -> None:
    variables = {METRICS_ENDPOINT: "", ENDPOINT: "http://c:4318", name: value}
    with pytest.raises(ConfigError) as raised:
        telemetry_settings(variables)
    assert raised.value.problems == (sentence,)


def test_all_problems_are_reported_together() -> None:
    variables = {
        ENDPOINT: "c",
        "OTEL_METRIC_EXPORT_INTERVAL": "1m",
        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/json",
    }
    with pytest.raises(ConfigError) as raised:
        telemetry_settings(variables)
    assert len(raised.value.problems) == 3

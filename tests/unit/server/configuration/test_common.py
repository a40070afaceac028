"""Keys of limits: Pulsar's with defaults, and ours, off in profile pulsar."""

from dataclasses import replace

import pytest

from server.configuration.common import LimitConfig
from tests.unit.server.configuration.test_flow import read_keys

ROLES = pytest.mark.parametrize("role", ["broker", "proxy"])


@ROLES
def test_profile_pulsar_has_only_the_limits_of_upstream(role: str) -> None:
    found = LimitConfig.of(read_keys({}, role, pulsar_compatible=True))
    assert found == replace(
        LimitConfig.of(read_keys({}, role)),
        handshake_seconds=0,
        unfinished_frame_bytes=0,
        http_seconds=0,
    )


@ROLES
def test_profile_floodgate_bounds_handshakes_unfinished_frames_and_http_requests(role: str) -> None:
    assert LimitConfig.of(read_keys({}, role)) == LimitConfig(
        handshake_seconds=10,
        requests_a_second=0,
        unfinished_frame_bytes=256 * 1024 * 1024,
        http_a_second=0,
        http_at_once=1024,
        http_connections=2048,
        http_body_bytes=-1,
        http_header_bytes=8192,
        http_seconds=30,
        http_idle_seconds=30,
    )


@pytest.mark.parametrize("pulsar_compatible", [False, True])
def test_every_limit_has_a_key(pulsar_compatible: bool) -> None:
    keys = {
        "floodgateHandshakeTimeoutMs": "1500",
        "floodgateMaxRequestsPerSecondPerConnection": "7",
        "floodgateMaxUnfinishedFramesMB": "8",
        "floodgateHttpRequestTimeoutMs": "2500",
        "httpRequestsLimitEnabled": "true",
        "httpRequestsMaxPerSecond": "12.5",
        "maxConcurrentHttpRequests": "3",
        "maxHttpServerConnections": "4",
        "httpMaxRequestSize": "5",
        "httpMaxRequestHeaderSize": "600",
        "httpServerIdleTimeout": "4000",
    }
    found = LimitConfig.of(read_keys(keys, pulsar_compatible=pulsar_compatible))
    assert found == LimitConfig(
        handshake_seconds=1.5,
        requests_a_second=7,
        unfinished_frame_bytes=8 * 1024 * 1024,
        http_a_second=12.5,
        http_at_once=3,
        http_connections=4,
        http_body_bytes=5,
        http_header_bytes=600,
        http_seconds=2.5,
        http_idle_seconds=4.0,
    )


def test_an_http_rate_without_its_switch_does_not_limit() -> None:
    checked = read_keys({"httpRequestsMaxPerSecond": "1"})
    assert LimitConfig.of(checked).http_a_second == 0


def test_an_enabled_http_rate_of_zero_is_a_problem() -> None:
    checked = read_keys({"httpRequestsLimitEnabled": "true", "httpRequestsMaxPerSecond": "0"})
    LimitConfig.of(checked)
    assert checked.problems == [
        "httpRequestsMaxPerSecond=0.0: no request would pass; set more, or "
        "httpRequestsLimitEnabled=false"
    ]

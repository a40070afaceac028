"""Effective settings of a server, with its version, as log line and metric.

In the first log line and in ``floodgate_server_info``, so that figures can be traced to the
settings that produced them. Limits, timeouts and modes only, no secrets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from proto.version import VERSION
from server.configuration.common import POLICY_KEY
from server.configuration.flow import (
    GRACE_KEY,
    HIGH_WATER_MARK_KEY,
    LOW_WATER_MARK_KEY,
    PAUSE_KEY,
    PENDING_OUTBOUND_KEY,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from server.configuration.common import ServerConfig

METRIC = "floodgate_server_info"
SEND_BUFFER_KEY = "floodgateSocketSendBufferBytes"
_HEAP, _DIRECT = "maxTopicListInFlightHeapMemSize", "maxTopicListInFlightDirectMemSize"
_TIMEOUT, _QUEUE = "PermitsAcquireTimeoutMillis", "PermitsAcquireQueueSize"
_MEGABYTE_BYTES = 1024 * 1024

_VALUES: dict[str, Callable[[ServerConfig], object]] = {
    "floodgateProfile": lambda config: config.profile.value,
    POLICY_KEY: lambda config: config.admission.policy_name,
    "floodgateSizeEstimate": lambda config: config.size_estimate.value,
    "floodgateResponseBuffers": lambda config: config.response_buffers.value,
    f"{_HEAP}MB": lambda config: config.topic_list_limits.heap_max_bytes // _MEGABYTE_BYTES,
    f"{_HEAP}{_TIMEOUT}": lambda config: _millis(config.topic_list_limits.heap_timeout_seconds),
    f"{_HEAP}{_QUEUE}": lambda config: config.topic_list_limits.heap_queue_size,
    f"{_DIRECT}MB": lambda config: config.topic_list_limits.direct_max_bytes // _MEGABYTE_BYTES,
    f"{_DIRECT}{_TIMEOUT}": lambda config: _millis(config.topic_list_limits.direct_timeout_seconds),
    f"{_DIRECT}{_QUEUE}": lambda config: config.topic_list_limits.direct_queue_size,
    "maxMessageSize": lambda config: config.max_message_size,
    HIGH_WATER_MARK_KEY: lambda config: config.flow.rules.marks.high_bytes,
    LOW_WATER_MARK_KEY: lambda config: config.flow.rules.marks.low_bytes,
    PAUSE_KEY: lambda config: str(config.flow.rules.pause_if_unwritable).lower(),
    "keepAliveIntervalSeconds": lambda config: round(config.flow.keep_alive_seconds),
    GRACE_KEY: lambda config: _millis(config.flow.slow_peers.grace_seconds),
    PENDING_OUTBOUND_KEY: lambda config: config.flow.max_pending_outbound_bytes // _MEGABYTE_BYTES,
    SEND_BUFFER_KEY: lambda config: config.socket_send_buffer_bytes,
}
INFO_KEYS = tuple(_VALUES)


def server_info(config: ServerConfig) -> dict[str, str]:
    """Return the version, ``INFO_KEYS`` and the server's own keys, with effective values."""
    values = {key: str(value(config)) for key, value in _VALUES.items()}
    return {"version": VERSION, **values, **config.own_keys}


def label_of(key: str) -> str:
    """Return the metric label of a key, in Prometheus' spelling."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower()


def info_sentence(role: str, config: ServerConfig) -> str:
    """Return the first line of a server's log."""
    info = server_info(config)
    keys = ", ".join(f"{key}={value}" for key, value in info.items() if key != "version")
    return f"Floodgate {role} {info['version']} with {keys}"


def _millis(seconds: float) -> int:
    return round(seconds * 1000)

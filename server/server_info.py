"""Version and effective settings of a server, shown in its first log line and as a metric.

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
    from server.configuration.common import ServerConfig

METRIC = "floodgate_server_info"
_HEAP, _DIRECT = "maxTopicListInFlightHeapMemSize", "maxTopicListInFlightDirectMemSize"
_TIMEOUT, _QUEUE = "PermitsAcquireTimeoutMillis", "PermitsAcquireQueueSize"

INFO_KEYS = (
    "floodgateProfile",
    POLICY_KEY,
    "floodgateSizeEstimate",
    "floodgateResponseBuffers",
    *(f"{budget}{key}" for budget in (_HEAP, _DIRECT) for key in ("MB", _TIMEOUT, _QUEUE)),
    "maxMessageSize",
    HIGH_WATER_MARK_KEY,
    LOW_WATER_MARK_KEY,
    PAUSE_KEY,
    "keepAliveIntervalSeconds",
    GRACE_KEY,
    PENDING_OUTBOUND_KEY,
    "floodgateSocketSendBufferBytes",
)


def server_info(config: ServerConfig) -> dict[str, str]:
    """Return a server's version and the effective values of its most important keys."""
    values = {key: config.keys.shown(key) for key in (*INFO_KEYS, *config.own_keys)}
    return {"version": VERSION, **values}


def label_of(key: str) -> str:
    """Return the name of a configuration key as a metric's label, in snake_case."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower()


def info_sentence(role: str, config: ServerConfig) -> str:
    """Return the first log line of a server: its version and settings."""
    info = server_info(config)
    keys = ", ".join(f"{key}={value}" for key, value in info.items() if key != "version")
    return f"Floodgate {role} {info['version']} with {keys}"

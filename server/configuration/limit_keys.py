"""Configuration keys of the memory limits, by the limit that they set."""

from __future__ import annotations

from limiter.errors import LimitScope
from limiter.memory.dual_limiter import LimitType

LIMIT_KEYS = {
    LimitType.HEAP_MEMORY: "maxTopicListInFlightHeapMemSizeMB",
    LimitType.DIRECT_MEMORY: "maxTopicListInFlightDirectMemSizeMB",
}


CAP_KEYS = {
    LimitScope.CONNECTION: "floodgateTopicListMaxBytesPerConnection",
    LimitScope.NAMESPACE: "floodgateTopicListMaxBytesPerNamespace",
    LimitScope.TENANT: "floodgateTopicListMaxBytesPerTenant",
}

"""A broker's share of its machine, in percent, as measured by a real broker's load balancer.

Read at each scrape. Processor time is a mean over at least a minute, the interval of a real
broker's load reports, independent of the number of scrapes.
"""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from limiter.clock import Clock
    from limiter.flow.outbound_buffer import OutboundTotals

REPORT_SECONDS = 60.0
"""Upstream's loadBalancerHostUsageCheckIntervalMinutes."""
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_RESIDENT = Path("/proc/self/statm")


class LoadUsage:
    """The share of processors, memory and outbound capacity used by a broker.

    Args:
        outbound: Bytes waiting for clients, and their bound (floodgateMaxPendingOutboundMB).
        processor_seconds: Reads the processor time of the process.
    """

    def __init__(
        self,
        outbound: OutboundTotals,
        clock: Clock,
        processor_seconds: Callable[[], float] = time.process_time,
    ) -> None:
        self._outbound = outbound
        self._clock = clock
        self._processor_seconds = processor_seconds
        self._processors = os.cpu_count() or 1
        self._began = clock.now(), processor_seconds()
        self._processor_percent = 0.0

    def percent(self) -> dict[str, float]:
        """Return the shares by resource, without resources of unknown total."""
        shares = {"cpu": self._processor_share()}
        whole = memory_limit_bytes()
        if whole > 0:
            shares["memory"] = 100 * resident_bytes() / whole
        most = self._outbound.max_unpaid_bytes
        if most > 0:
            shares["directMemory"] = 100 * self._outbound.unpaid_bytes / most
        return shares

    def _processor_share(self) -> float:
        now, used = self._clock.now(), self._processor_seconds()
        since, used_then = self._began
        if now - since >= REPORT_SECONDS:
            share = (used - used_then) / (now - since) / self._processors
            self._processor_percent = 100 * share
            self._began = now, used
        return self._processor_percent


def memory_limit_bytes() -> int:
    """Return the process's memory limit, from the container or the machine."""
    limits = [os.sysconf("SC_PHYS_PAGES") * resource.getpagesize()]
    texts = [path.read_text(encoding="ascii") for path in map(Path, _LIMITS) if path.exists()]
    return min(limits + [int(text) for text in texts if text.strip().isdecimal()])


def resident_bytes() -> int:
    """Return the process's resident memory; 0 if the system does not report it."""
    if not _RESIDENT.exists():
        return 0
    return int(_RESIDENT.read_text(encoding="ascii").split()[1]) * resource.getpagesize()

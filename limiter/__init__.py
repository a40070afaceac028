"""A library of memory limits and flow control: bytes, waiters and clocks, nothing of Pulsar's wire.

docs/limiter-library.md shows its use. What is named here is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limiter.admission.rules import AdmissionCaps, AdmissionPolicy, AdmissionRules
    from limiter.client_memory.errors import (
        MemoryBufferIsFullError,
        MemoryReserveCancelledError,
        MemoryReserveClosedError,
        MemoryReserveError,
        MemoryReserveQueueFullError,
        MemoryReserveTimeoutError,
    )
    from limiter.client_memory.memory_limit_controller import MemoryLimitController
    from limiter.clock import Clock, LoopClock, TimerHandle
    from limiter.errors import (
        LimitScope,
        PermitAcquireCancelledError,
        PermitAcquireClosedError,
        PermitAcquireError,
        PermitAcquireQueueFullError,
        PermitAcquireStalledError,
        PermitAcquireTimeoutError,
        PermitTooLargeError,
    )
    from limiter.memory.dual_limiter import (
        AsyncDualMemoryLimiter,
        DualStatistics,
        LimitType,
        MemoryLimit,
        MemoryPermit,
    )
    from limiter.permits.account import SharedHolder, Waiter
    from limiter.permits.ledger import Ledger, UnbalancedLedgerError
    from limiter.permits.permit import (
        AcquireOutcome,
        Contention,
        Permit,
        SemaphoreStatistics,
    )
    from limiter.semaphore.async_semaphore import AsyncSemaphore

_MODULES = (
    "limiter.clock",
    "limiter.errors",
    "limiter.admission.rules",
    "limiter.client_memory.errors",
    "limiter.permits.permit",
    "limiter.permits.account",
    "limiter.permits.ledger",
    "limiter.semaphore.async_semaphore",
    "limiter.memory.dual_limiter",
    "limiter.client_memory.memory_limit_controller",
)
"""The modules in which a name is looked for, those that are imported fastest first."""

__all__ = [
    "AcquireOutcome",
    "AdmissionCaps",
    "AdmissionPolicy",
    "AdmissionRules",
    "AsyncDualMemoryLimiter",
    "AsyncSemaphore",
    "Clock",
    "Contention",
    "DualStatistics",
    "Ledger",
    "LimitScope",
    "LimitType",
    "LoopClock",
    "MemoryBufferIsFullError",
    "MemoryLimit",
    "MemoryLimitController",
    "MemoryPermit",
    "MemoryReserveCancelledError",
    "MemoryReserveClosedError",
    "MemoryReserveError",
    "MemoryReserveQueueFullError",
    "MemoryReserveTimeoutError",
    "Permit",
    "PermitAcquireCancelledError",
    "PermitAcquireClosedError",
    "PermitAcquireError",
    "PermitAcquireQueueFullError",
    "PermitAcquireStalledError",
    "PermitAcquireTimeoutError",
    "PermitTooLargeError",
    "SemaphoreStatistics",
    "SharedHolder",
    "TimerHandle",
    "UnbalancedLedgerError",
    "Waiter",
]


def __getattr__(name: str) -> object:
    """Import what is asked for (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = (import_module(module) for module in _MODULES)
    return next(getattr(module, name) for module in modules if hasattr(module, name))

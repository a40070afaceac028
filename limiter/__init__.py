"""Library of memory limits and flow control, independent of Pulsar's wire protocol.

docs/limiter-library.md shows its use.
"""

from __future__ import annotations

from limiter.admission.caps import AdmissionCaps
from limiter.admission.fair import FairAdmission
from limiter.admission.fifo import FifoAdmission
from limiter.admission.policy import Admission
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.admission.view import BudgetView
from limiter.client_memory.errors import (
    MemoryBufferIsFullError,
    MemoryReserveCancelledError,
    MemoryReserveClosedError,
    MemoryReserveError,
    MemoryReserveQueueFullError,
    MemoryReserveTimeoutError,
)
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from limiter.client_memory.reservation import Reservation, ReserveOutcome
from limiter.clock import Clock, LoopClock, TimerHandle
from limiter.errors import (
    LimitScope,
    PermitAcquireCancelledError,
    PermitAcquireClosedError,
    PermitAcquireError,
    PermitAcquireQueueFullError,
    PermitAcquireRefusedError,
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

__all__ = [
    "AcquireOutcome",
    "Admission",
    "AdmissionCaps",
    "AdmissionPolicy",
    "AdmissionRules",
    "AsyncDualMemoryLimiter",
    "AsyncSemaphore",
    "BudgetView",
    "Clock",
    "Contention",
    "DualStatistics",
    "FairAdmission",
    "FifoAdmission",
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
    "PermitAcquireRefusedError",
    "PermitAcquireStalledError",
    "PermitAcquireTimeoutError",
    "PermitTooLargeError",
    "Reservation",
    "ReserveOutcome",
    "SemaphoreStatistics",
    "SharedHolder",
    "TimerHandle",
    "UnbalancedLedgerError",
    "Waiter",
]

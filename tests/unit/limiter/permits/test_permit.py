"""A waiter's reports, and their times."""

import gc
import weakref
from contextlib import suppress

import pytest

from limiter.client_memory.errors import MemoryReserveCancelledError
from limiter.client_memory.reservation import MemoryWaiter
from limiter.errors import PermitAcquireCancelledError
from limiter.permits.account import Waiter
from limiter.permits.permit import Permit
from tests.support.clocks.settle import started


def test_a_permit_shows_its_size() -> None:
    assert repr(Permit(5, None)) == "<Permit 5>"


def test_a_waiting_request_has_no_result() -> None:
    with pytest.raises(RuntimeError, match="still waiting"):
        Waiter(1, None, None).result()


def test_a_refused_request_raises_its_error() -> None:
    waiter = Waiter(1, None, None)
    waiter.settle(None, PermitAcquireCancelledError())
    with pytest.raises(PermitAcquireCancelledError):
        waiter.result()


def test_callbacks_run_on_settling_and_immediately_if_already_settled() -> None:
    waiter = Waiter(1, None, None)
    calls: list[str] = []
    waiter.on_done(lambda: calls.append("before"))
    waiter.settle(Permit(1, None), None)
    waiter.on_done(lambda: calls.append("after"))
    assert calls == ["before", "after"]


async def test_a_waiting_caller_resumes_when_the_request_is_settled() -> None:
    waiter = Waiter(1, None, None)
    waiting = await started(waiter.wait())
    assert not waiting.done()
    waiter.settle(Permit(1, None), None)
    await waiting
    await waiter.wait()


async def test_the_result_for_a_cancelled_caller_is_still_recorded() -> None:
    waiter = Waiter(1, None, None)
    waiting = await started(waiter.wait())
    waiting.cancel()
    waiter.settle(Permit(1, None), None)
    assert waiter.result().size == 1


class Kept:
    """Permit held by a request until refusal."""


@pytest.mark.parametrize("kind", ["permit", "client memory"])
def test_a_refused_request_releases_all_references_immediately(kind: str) -> None:
    # The collector is off
    gc.collect()
    gc.disable()
    ended: list[weakref.ref[Kept]] = []

    def refused() -> None:
        waiter: Waiter | MemoryWaiter
        if kind == "permit":
            waiter = Waiter(1)
            waiter.settle(None, PermitAcquireCancelledError())
        else:
            waiter = MemoryWaiter(1)
            waiter.settle(None, MemoryReserveCancelledError())
        kept = Kept()
        ended.append(weakref.ref(kept))
        waiter.result()

    try:
        with suppress(PermitAcquireCancelledError, MemoryReserveCancelledError):
            refused()
        assert ended[0]() is None
    finally:
        gc.enable()

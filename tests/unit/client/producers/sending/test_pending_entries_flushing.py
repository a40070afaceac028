"""Callers of flush continue exactly when the awaited messages are answered."""

from client.producers.sending.pending_entries import Flushers
from tests.support.clocks.settle import settle, started


async def test_a_flush_continues_when_the_oldest_message_is_newer_than_its_last_message() -> None:
    flushers = Flushers()
    first, second = [await started(flushers.wait_for(serial)) for serial in (3, 5)]
    flushers.oldest_is(3)
    await settle()
    assert not first.done()
    flushers.oldest_is(4)
    await settle()
    assert (first.done(), second.done()) == (True, False)
    flushers.oldest_is(None)
    assert await second is None
    assert not flushers


async def test_a_flush_gets_the_first_error_of_its_messages() -> None:
    flushers = Flushers()
    first, second = [await started(flushers.wait_for(serial)) for serial in (3, 5)]
    early, late = ValueError("early"), ValueError("late")
    flushers.failed(5, late)
    flushers.failed(2, early)
    flushers.oldest_is(None)
    assert (await first, await second) == (early, late)


async def test_a_cancelled_flush_is_forgotten_and_blocks_no_other_flush() -> None:
    flushers = Flushers()
    cancelled, other = [await started(flushers.wait_for(1)) for _ in range(2)]
    cancelled.cancel()
    flushers.oldest_is(None)
    await settle()
    assert cancelled.cancelled()
    assert other.done()
    assert not flushers

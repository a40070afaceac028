"""Listings over HTTP yield the event loop to concurrent tasks."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator

from aiohttp.test_utils import make_mocked_request

from broker.admin.listing_response import AT_ONCE_BYTES, ListingResponses
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import started

PARTS = 5
NAMES = [b"persistent://a/b/c"]


class LoopTurns:
    """Counts the turns of the event loop."""

    def __init__(self) -> None:
        self.now = 0
        self._next = asyncio.get_running_loop().call_soon(self._count)

    def _count(self) -> None:
        self.now += 1
        self._next = asyncio.get_running_loop().call_soon(self._count)

    def stop(self) -> None:
        self._next.cancel()


async def parts_made(listings: int) -> Counter[int]:
    """Write listings in one step each; return the number of parts made in each turn."""
    turns, made = LoopTurns(), Counter[int]()
    responses = ListingResponses(ManualClock())

    def parts() -> Iterator[list[bytes]]:
        for _ in range(PARTS):
            made[turns.now] += 1
            yield NAMES

    await asyncio.gather(*(written(responses, parts()) for _ in range(listings)))
    turns.stop()
    return made


async def written(
    responses: ListingResponses,
    parts: Iterable[list[bytes]],
    write: Callable[[bytes], Awaitable[None]] | None = None,
) -> None:
    request = make_mocked_request("GET", "/")
    if write is not None:
        request._payload_writer.write = write  # type: ignore[method-assign]
    await responses.respond_in_parts(request, parts, AT_ONCE_BYTES + 1)


async def test_a_turn_of_the_event_loop_makes_one_part_for_any_number_of_listings() -> None:
    made = await parts_made(listings=256)
    assert made.total() == 256 * PARTS
    assert max(made.values()) == 1


async def test_a_single_listing_makes_a_part_in_each_turn_of_the_event_loop() -> None:
    made = await parts_made(listings=1)
    assert made.total() == PARTS
    assert max(made) - min(made) == PARTS - 1


async def test_a_listing_waiting_for_a_slow_client_does_not_delay_another_listing() -> None:
    responses, read = ListingResponses(ManualClock()), asyncio.Event()

    async def wait_for_client(_: bytes) -> None:
        await read.wait()

    slow = await started(written(responses, [NAMES] * PARTS, wait_for_client))
    other = await started(written(responses, [NAMES] * PARTS))
    assert (slow.done(), other.done()) == (False, True)
    read.set()
    await slow

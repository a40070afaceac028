"""Waits for a fault end with its actions, or when it is cleared."""

import asyncio

from server.faults.fault import Fault
from server.faults.registry import FaultRegistry
from tests.support.clocks.settle import settle

DROP = Fault.of({"on": ["SEND"], "do": {"action": "drop"}})


async def test_a_wait_ends_with_the_last_of_its_actions() -> None:
    found = FaultRegistry().set(DROP)
    waits = asyncio.create_task(found.wait(2))
    for _ in range(2):
        await settle()
        assert not waits.done()
        found.schedule.due()
        found.fired()
    await waits


async def test_a_wait_ends_when_the_fault_is_cleared() -> None:
    faults = FaultRegistry()
    found = faults.set(DROP)
    waits = asyncio.create_task(found.wait(2))
    await settle()
    faults.clear_all()
    await waits
    await found.wait(1)

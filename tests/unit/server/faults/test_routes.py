"""Waits for faults over REST end with their client."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from server.faults.fault import Fault
from server.faults.registry import FaultRegistry
from server.faults.routes import CLIENT_CHECK_SECONDS, WAIT_PATH, fault_routes
from server.http import RestError
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle

DROP = Fault.of({"on": ["SEND"], "do": {"action": "drop"}})


async def test_a_wait_of_a_disconnected_client_is_ended() -> None:
    faults, clock = FaultRegistry(), ManualClock()
    fault = faults.set(DROP)
    routes = fault_routes(faults, clock, serves_topics=True, shares_topics=False)
    (wait,) = (each for each in routes if each.path == WAIT_PATH)
    request: Any = SimpleNamespace(
        match_info={"id": fault.fault_id}, query={"timeoutMs": "600000"}, transport=object()
    )
    answer = asyncio.ensure_future(wait.handler(request))
    await settle()
    assert faults.waits == 1
    request.transport = None
    clock.advance(CLIENT_CHECK_SECONDS)
    with pytest.raises(RestError, match="acted 0 of 1 times"):
        await answer
    assert faults.waits == 0

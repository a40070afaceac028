"""Servers in the test's event loop: their state when a test fails."""

import pytest

from tests.support.clocks.manual_clock import ManualClock
from tests.support.processes.cluster import cluster


async def test_a_test_that_fails_with_a_pipe_open_ends_although_time_stood_still() -> None:
    clock = ManualClock()
    stood = clock.now()

    async def fails() -> None:
        async with cluster(clock=clock) as parts:
            broker = parts.broker.service_url.removeprefix("pulsar://")
            await parts.peer("proxy", target=broker)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fails()
    # The proxy's drain waited for a while of the clock
    assert clock.now() > stood

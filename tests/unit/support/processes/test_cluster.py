"""Servers in the test's own loop: what they are when a test fails."""

from __future__ import annotations

import pytest

from tests.support.clocks.manual_clock import ManualClock
from tests.support.processes.cluster import cluster


async def test_a_test_that_fails_with_a_pipe_open_ends_although_time_stood_still() -> None:
    # Given
    clock = ManualClock()
    stood = clock.now()

    async def fails() -> None:
        async with cluster(clock=clock) as parts:
            broker = parts.broker.service_url.removeprefix("pulsar://")
            await parts.peer("proxy", target=broker)
            raise ZeroDivisionError

    # When
    with pytest.raises(ZeroDivisionError):
        await fails()
    # Then: the proxy's drain waited for a while of the clock
    assert clock.now() > stood

"""A pipe of a draining proxy ends after the broker's last bytes."""

import asyncio

from proxy.pipe.direct_handler import PipeLeg
from proxy.pipe.leg import MOST_LOOKS, QUIET_SECONDS, end_pipe
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.peers.memory_transport import MemoryTransport


class Pipe:
    """Both legs of a pipe, and the task ending the pipe."""

    def __init__(self, leave_seconds: float = 0.0) -> None:
        self.clock = ManualClock()
        self.client, self.broker = PipeLeg(), PipeLeg()
        self.to_client = MemoryTransport(self.client, reads_at_once=True).connect()
        self.to_broker = MemoryTransport(self.broker, reads_at_once=True).connect()
        self.client.other, self.broker.other = self.broker, self.client
        self.client.pipe_to(self.broker)
        self.broker.pipe_to(self.client)
        ending = end_pipe(self.client, self.clock, leave_seconds)
        self.ending = asyncio.get_running_loop().create_task(ending)

    async def passes(self, seconds: float) -> None:
        await settle()
        self.clock.advance(seconds)
        await settle()


async def test_the_brokers_last_bytes_pass_and_the_pipe_ends_once_the_broker_is_silent() -> None:
    pipe = Pipe()
    await settle()
    pipe.broker.data_received(b"receipt")
    await pipe.passes(QUIET_SECONDS)
    waited = not pipe.ending.done()
    await pipe.passes(QUIET_SECONDS)
    assert waited
    assert pipe.ending.done()
    assert bytes(pipe.to_client.received) == b"receipt"


async def test_bytes_from_the_client_are_not_forwarded_while_the_pipe_ends() -> None:
    pipe = Pipe()
    await settle()
    pipe.client.data_received(b"SEND")
    assert bytes(pipe.to_broker.received) == b""
    pipe.ending.cancel()


async def test_a_pipe_ends_after_a_bounded_wait_for_a_broker_that_keeps_sending() -> None:
    pipe = Pipe()
    for _ in range(MOST_LOOKS):
        assert not pipe.ending.done()
        await settle()
        pipe.broker.data_received(b"message")
        await pipe.passes(QUIET_SECONDS)
    assert pipe.ending.done()


async def test_a_client_is_still_served_and_may_disconnect_within_the_leave_time() -> None:
    pipe = Pipe(leave_seconds=30.0)
    await settle()
    pipe.client.data_received(b"SEND")
    passed = bytes(pipe.to_broker.received)
    pipe.client.connection_lost(None)
    await settle()
    assert passed == b"SEND"
    assert pipe.ending.done()


async def test_a_client_that_stays_is_cut_off_after_the_configured_leave_time() -> None:
    pipe = Pipe(leave_seconds=30.0)
    await pipe.passes(30.0)
    pipe.client.data_received(b"SEND")
    await pipe.passes(QUIET_SECONDS)
    assert bytes(pipe.to_broker.received) == b""
    assert pipe.ending.done()


async def test_ending_a_connection_without_a_pipe_returns_immediately() -> None:
    clock, client = ManualClock(), PipeLeg()
    await end_pipe(client, clock, 30.0)
    assert client.taking_frames

"""Server worlds detect held resources, bad bytes and long turns."""

import asyncio
import struct

import pytest

from tests.fuzz.driving.broker_world import BrokerWorld
from tests.fuzz.driving.peer import Peer
from tests.fuzz.driving.stepped_loop import SteppedLoop
from tests.fuzz.rules import BrokenRuleError


def test_a_permit_that_nobody_gives_back_is_found() -> None:
    world = BrokerWorld()
    world.check()
    world.service.lookups.try_acquire(object())
    with pytest.raises(BrokenRuleError, match="'lookup places': 1"):
        world.check()


def test_a_loop_that_never_rests_is_found() -> None:
    loop = SteppedLoop()

    def again() -> None:
        loop.call_soon(again)

    loop.call_soon(again)
    with pytest.raises(BrokenRuleError, match="come to rest"):
        loop.settle()


def test_time_passes_when_it_is_told_and_timers_run_in_their_order() -> None:
    loop, rung = SteppedLoop(), []
    for seconds in (3, 1, 2):
        loop.call_later(seconds, rung.append, seconds)
    loop.call_later(1, rung.append, "cancelled").cancel()
    loop.pass_time(2.5)
    assert (rung, loop.time()) == ([1, 2], 2.5)


@pytest.mark.parametrize("sent", [struct.pack(">II", 4, 9), struct.pack(">II", 6, 2) + b"\xff\xff"])
def test_an_answer_that_no_client_can_read_is_found(sent: bytes) -> None:
    loop = SteppedLoop()
    with loop.running():
        peer = Peer(loop, asyncio.Protocol())
        peer.transport.write(sent)
    with pytest.raises(BrokenRuleError, match="that the server sent"):
        peer.answers()

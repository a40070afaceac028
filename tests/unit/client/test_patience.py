"""Temporary failures are retried within the caller's time limit."""

import asyncio
from itertools import pairwise

import pytest

import proto.PulsarApi_pb2 as pb
from client.connection.errors import TooManyPendingRequestsError
from client.exceptions import (
    AuthorizationError,
    ConnectError,
    NotConnected,
    PulsarException,
    Timeout,
    server_response_error,
)
from client.patience import Patience, attachment_may_pass
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started

BUSY = server_response_error(pb.TooManyRequests, "busy")


class World:
    """Attempts that fail with each given error first."""

    def __init__(self, *errors: PulsarException) -> None:
        self.clock = ManualClock()
        self.patience = Patience(self.clock)
        self.errors = list(errors)
        self.attempts: list[float] = []

    async def attempt(self) -> str:
        self.attempts.append(round(self.clock.now(), 3))
        if self.errors:
            raise self.errors.pop(0)
        return "done"

    async def until(self, seconds: float) -> asyncio.Task[str]:
        return await started(
            self.patience.until(self.attempt, "it was not done", seconds, attachment_may_pass)
        )

    async def after(self, seconds: float) -> None:
        await settle()
        self.clock.advance(seconds)
        await settle()


async def test_an_opened_connection_wakes_every_waiter_without_a_server() -> None:
    world = World(ConnectError("away"), ConnectError("away"))
    both = [await world.until(30.0), await world.until(30.0)]
    world.patience.connection_opened()
    await settle()
    assert [one.result() for one in both] == ["done", "done"]


async def test_waiters_are_woken_at_most_a_hundred_per_turn() -> None:
    world = World(*[ConnectError("away")] * 250)
    waiting = [
        asyncio.ensure_future(world.patience.delay(9.0, world.errors[0])) for _ in range(250)
    ]
    await settle()
    world.patience.connection_opened()
    done = []
    for _ in range(4):
        await asyncio.sleep(0)
        done.append(sum(one.done() for one in waiting))
    await settle()
    assert max(later - before for before, later in pairwise(done)) <= 100
    assert all(one.done() for one in waiting)


@pytest.mark.parametrize(
    ("code", "at_handshake", "passes"),
    [
        (pb.AuthenticationError, True, False),
        (pb.AuthenticationError, False, True),
        (pb.AuthorizationError, True, True),
        (pb.AuthorizationError, False, False),
    ],
)
def test_authentication_is_final_at_the_handshake_and_authorization_at_the_command(
    code: pb.ServerError.ValueType, at_handshake: bool, passes: bool
) -> None:
    error = server_response_error(code, "no")
    error.at_handshake = at_handshake
    assert attachment_may_pass(error) is passes


async def test_a_retried_refusal_is_raised_itself_at_the_timeout() -> None:
    refusal = server_response_error(pb.AuthorizationError, "no")
    world = World(*[refusal] * 100)
    trying = await started(
        world.patience.until(world.attempt, "it was not done", 5.0, lambda _: True)
    )
    for _ in range(5):
        await world.after(1.0)
    with pytest.raises(AuthorizationError, match="no"):
        await trying
    assert len(world.attempts) > 3


async def test_an_opened_connection_does_not_shorten_the_delay_after_a_refusal() -> None:
    world = World(BUSY)
    waiting = await world.until(30.0)
    world.patience.connection_opened()
    await settle()
    assert not waiting.done()
    await world.after(0.1)
    assert waiting.result() == "done"


async def test_a_server_that_returns_late_is_found_before_the_timeout() -> None:
    world = World(*[NotConnected("away")] * 1_000)
    waiting = await world.until(30.0)
    for _ in range(260):
        await world.after(0.1)
    world.errors.clear()
    for _ in range(35):
        await world.after(0.1)
    assert waiting.result() == "done"


async def test_an_attempt_without_an_answer_ends_at_the_timeout() -> None:
    world = World()
    world.attempt = asyncio.Event().wait  # type: ignore[method-assign, assignment]
    waiting = await world.until(5.0)
    await world.after(5.0)
    with pytest.raises(Timeout, match="it was not done in 5 s: no answer came"):
        await waiting


@pytest.mark.parametrize("error", [BUSY, TooManyPendingRequestsError("full")])
async def test_too_many_requests_are_retried_at_a_first_attachment(error: PulsarException) -> None:
    world = World(error)
    waiting = await world.until(30.0)
    await world.after(0.1)
    assert waiting.result() == "done"

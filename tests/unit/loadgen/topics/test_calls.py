"""Retried calls, with growing waits."""

import pytest

from client.admin.errors import (
    AdminDisconnectedError,
    AdminError,
    AdminRefusedError,
    AdminTimeoutError,
    AdminUnreachableError,
)
from loadgen.topics.calls import Retries


class Server:
    """Fails with each error in order, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    async def call(self) -> str:
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


class Waits:
    """Instant sleep that records durations."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.mark.parametrize(
    "error",
    [
        AdminRefusedError(429, "slowly"),
        AdminRefusedError(500, "oh"),
        AdminRefusedError(503, "busy"),
        AdminDisconnectedError("broke off"),
        AdminTimeoutError("sent nothing"),
    ],
)
async def test_a_temporary_error_is_retried_with_growing_delays(error: AdminError) -> None:
    waits = Waits()
    retries = Retries((1, 2, 4), waits.sleep)
    answer = await retries.call(Server(error, error).call)
    assert (answer, retries.count) == ("answer", 2)
    assert 0.5 <= waits.seconds[0] <= 1 <= waits.seconds[1] <= 2


@pytest.mark.parametrize(
    "error",
    [
        AdminRefusedError(409, "exists"),
        AdminRefusedError(412, "never"),
        AdminRefusedError(501, "not here"),
        AdminUnreachableError("nobody"),
    ],
)
async def test_a_permanent_error_is_raised_without_a_retry(error: AdminError) -> None:
    waits = Waits()
    with pytest.raises(type(error)):
        await Retries((1,), waits.sleep).call(Server(error).call)
    assert waits.seconds == []


async def test_the_error_of_the_last_attempt_is_raised() -> None:
    busy = [AdminRefusedError(503, str(number)) for number in range(5)]
    with pytest.raises(AdminRefusedError, match="2"):
        await Retries((1, 1), Waits().sleep).call(Server(*busy).call)

"""A message's contents, and how a failure reaches the program."""

import pytest

from client.exceptions import Timeout
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from tests.unit.client.producers.sending.messages import pending


async def test_held_bytes_count_payload_properties_and_keys() -> None:
    message = pending(b"1234", properties={"ab": "ü"}, partition_key="k€y", ordering_key="\udcff")
    assert message.held_bytes == 4 + (2 + 2) + 5 + 1


async def test_the_memory_of_a_message_is_released_once() -> None:
    memory = MemoryLimitController(10)
    message = pending()
    message.release()
    message.reservation = memory.reserve_nowait(5)
    message.release()
    message.release()
    assert memory.current_usage == 0


async def test_every_caller_gets_its_own_error_instance() -> None:
    error = Timeout("no receipt")
    first, second, cancelled = pending(), pending(), pending()
    cancelled.result.cancel()
    for message in (first, second, cancelled):
        message.fail(error)
    with pytest.raises(Timeout, match="no receipt") as one:
        await first.result
    with pytest.raises(Timeout) as other:
        await second.result
    assert one.value is not other.value
    assert cancelled.result.cancelled()

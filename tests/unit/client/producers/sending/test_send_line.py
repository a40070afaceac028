"""Messages get a place, then memory, in order of request; cancelled requests hold nothing."""

from typing import Any, cast

import pytest

from client.exceptions import AlreadyClosed, MemoryBufferIsFullError, ProducerQueueIsFullError
from client.messages.chunked_message import Chunks
from client.producers.sending import send_line
from client.producers.sending.pending_message import PendingMessage
from client.producers.sending.send_line import BARE_MESSAGE_BYTES, MOST_IN_A_TURN, SendLine
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from tests.support.clocks.settle import settle
from tests.unit.client.producers.sending.messages import pending


class Line(SendLine):
    """A line, and the messages that passed."""

    def __init__(self, limit_bytes: int = 1_000, places: int = 10) -> None:
        self.memory = MemoryLimitController(limit_bytes)
        self.sent: list[PendingMessage] = []
        super().__init__(self.memory, places, self._sent)

    def _sent(self, message: PendingMessage) -> bool:
        self.sent.append(message)
        return True


async def test_a_message_waiting_for_a_place_holds_no_memory() -> None:
    line = Line(places=1)
    first, second = pending(), pending()
    line.enter(first)
    line.enter(second)
    assert (line.sent, line.memory.current_usage) == ([first], 1)
    line.give_back()
    line.go_on()
    assert line.sent == [first, second]


async def test_only_the_first_waiting_message_requests_memory_and_holds_a_place() -> None:
    line = Line()
    held = line.memory.reserve_nowait(2_000)
    messages = [pending() for _ in range(3)]
    for message in messages:
        line.enter(message)
    assert (line.memory.statistics().waiters, line.places, line.sent) == (1, 1, [])
    held.release()
    await settle()
    assert line.sent == messages


async def test_a_cancelled_message_passes_its_turn_to_the_next() -> None:
    line = Line()
    held = line.memory.reserve_nowait(2_000)
    first, second = pending(), pending()
    line.enter(first)
    line.enter(second)
    held.release()  # Granted to the first request, cancelled before the notification.
    assert line.leave(first)
    assert not line.leave(first)
    line.go_on()
    await settle()
    assert (line.sent, line.places, line.memory.current_usage) == ([second], 1, 1)


async def test_messages_with_granted_resources_pass_before_waiting_messages() -> None:
    line = Line(limit_bytes=10)
    early = pending(bytes(20))
    line.enter(early)
    line.sent.clear()
    waiting = pending()
    line.enter(waiting)
    line.begin_with([early])
    assert line.sent == [early]
    early.release()
    line.give_back()
    await settle()
    assert line.sent == [early, waiting]


async def test_many_ready_messages_pass_in_several_turns_of_the_event_loop() -> None:
    line = Line(places=0, limit_bytes=0)
    early = [pending() for _ in range(2 * MOST_IN_A_TURN)]
    for message in early:
        line.enter(message)
    line.sent.clear()
    line.begin_with(early)
    assert line.sent == early[:MOST_IN_A_TURN]
    late = pending(waits=False)
    line.enter(late)
    await settle()
    assert line.sent == [*early, late]
    assert len(line) == 0


async def test_places_reserved_for_a_chunked_message_are_not_taken_by_a_later_send() -> None:
    line = Line()
    line.is_held = True
    in_parts, behind = pending(), pending()
    line.begin_with([in_parts, behind])
    for message in (in_parts, behind):
        message.reservation = line.memory.reserve_nowait(1)
    line.enter(pending(waits=False))
    in_parts.chunks = Chunks(cast("Any", None), 0)
    with pytest.raises(ProducerQueueIsFullError):
        line.enter(pending(waits=False))


async def test_a_send_that_does_not_wait_is_refused_with_the_missing_resource() -> None:
    line = Line(limit_bytes=10, places=2)
    line.enter(pending(bytes(20), waits=False))
    with pytest.raises(MemoryBufferIsFullError, match=r"used up \(20 bytes\)"):
        line.enter(pending(waits=False))
    line.enter(pending())
    with pytest.raises(MemoryBufferIsFullError, match="other sends wait for it"):
        line.enter(pending(waits=False))
    line = Line(places=1)
    line.enter(pending(waits=False))
    with pytest.raises(ProducerQueueIsFullError, match="1 messages have no receipt yet"):
        line.enter(pending(waits=False))


async def test_a_send_above_the_limit_of_waiting_sends_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(send_line, "MOST_WAITING", 2)
    line = Line(places=1)
    for _ in range(3):
        line.enter(pending())
    with pytest.raises(ProducerQueueIsFullError, match="2 sends wait for this producer already"):
        line.enter(pending())


async def test_a_closed_memory_limit_fails_every_waiting_send() -> None:
    line = Line(limit_bytes=10)
    line.memory.reserve_nowait(20)
    messages = [pending(), pending()]
    for message in messages:
        line.enter(message)
    line.memory.close()
    await settle()
    assert [type(one.result.exception()) for one in messages] == [AlreadyClosed] * 2
    assert (line.places, len(line)) == (0, 0)


@pytest.mark.parametrize("waits", [False, True])
async def test_a_message_without_a_size_is_refused_and_blocks_no_other_message(waits: bool) -> None:
    line = Line()
    broken, next_one = pending(waits=waits), pending()
    broken.payload = 5  # type: ignore[assignment]
    with pytest.raises(TypeError):
        line.enter(broken)
    line.enter(next_one)
    assert line.sent == [next_one]


async def test_without_a_place_limit_a_message_counts_its_overhead_towards_memory() -> None:
    line = Line(places=0, limit_bytes=1 << 20)
    line.enter(pending(b"1234"))
    assert line.memory.current_usage == 4 + BARE_MESSAGE_BYTES


async def test_a_held_line_sends_nothing_until_resumed() -> None:
    line, hurried = Line(), pending(waits=False)
    line.is_held = True
    line.enter(hurried)
    assert line.sent == []
    line.is_held = False
    line.go_on()
    assert line.sent == [hurried]


async def test_a_rest_does_not_release_a_held_line() -> None:
    line = Line()
    line.is_held = True
    line.rest()
    await settle()
    line.enter(pending(waits=False))
    assert line.sent == []

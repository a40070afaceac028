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


async def test_who_waits_for_a_place_holds_no_memory() -> None:
    line = Line(places=1)
    first, second = pending(), pending()
    line.enter(first)
    line.enter(second)
    assert (line.sent, line.memory.current_usage) == ([first], 1)
    line.give_back()
    line.go_on()
    assert line.sent == [first, second]


async def test_only_the_first_asks_for_memory_and_holds_its_place_meanwhile() -> None:
    line = Line()
    held = line.memory.reserve_nowait(2_000)
    messages = [pending() for _ in range(3)]
    for message in messages:
        line.enter(message)
    assert (line.memory.statistics().waiters, line.places, line.sent) == (1, 1, [])
    held.release()
    await settle()
    assert line.sent == messages


async def test_who_leaves_hands_its_turn_to_the_next() -> None:
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


async def test_those_that_hold_all_they_need_go_before_all_others() -> None:
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


async def test_very_many_that_may_go_on_do_so_in_several_turns() -> None:
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


async def test_nobody_takes_the_places_that_a_message_in_parts_is_to_get() -> None:
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


async def test_who_does_not_wait_is_told_what_is_missing() -> None:
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


async def test_the_line_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send_line, "MOST_WAITING", 2)
    line = Line(places=1)
    for _ in range(3):
        line.enter(pending())
    with pytest.raises(ProducerQueueIsFullError, match="2 sends wait for this producer already"):
        line.enter(pending())


async def test_a_client_that_is_closed_fails_all_that_wait() -> None:
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
async def test_what_has_no_size_holds_up_nobody(waits: bool) -> None:
    line = Line()
    broken, next_one = pending(waits=waits), pending()
    broken.payload = 5  # type: ignore[assignment]
    with pytest.raises(TypeError):
        line.enter(broken)
    line.enter(next_one)
    assert line.sent == [next_one]


async def test_without_places_each_message_counts_for_what_it_is() -> None:
    line = Line(places=0, limit_bytes=1 << 20)
    line.enter(pending(b"1234"))
    assert line.memory.current_usage == 4 + BARE_MESSAGE_BYTES


async def test_nobody_overtakes_what_holds_the_line() -> None:
    line, hurried = Line(), pending(waits=False)
    line.is_held = True
    line.enter(hurried)
    assert line.sent == []
    line.is_held = False
    line.go_on()
    assert line.sent == [hurried]


async def test_a_rest_ends_no_hold() -> None:
    line = Line()
    line.is_held = True
    line.rest()
    await settle()
    line.enter(pending(waits=False))
    assert line.sent == []

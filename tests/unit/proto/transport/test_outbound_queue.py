"""How much of a queue is written per turn, with a kernel that accepts all bytes."""

import pytest

from limiter.flow.outbound_buffer import OutboundBuffer, WriteBufferMarks
from proto.transport import outbound_queue
from proto.transport.outbound_queue import OutboundEntry, OutboundQueue
from proto.transport.writers import PlainWriter


class Transport:
    """Accepts up to ``room`` bytes immediately."""

    def __init__(self, room: int = 1 << 30) -> None:
        self.written = bytearray()
        self.room = room

    def write(self, data: bytes) -> None:
        self.written += data

    def writelines(self, data: list[bytes]) -> None:
        self.written += b"".join(data)

    def get_write_buffer_size(self) -> int:
        return max(0, len(self.written) - self.room)

    def is_closing(self) -> bool:
        return False


@pytest.fixture(autouse=True)
def small_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlainWriter, "step_bytes", 10)
    monkeypatch.setattr(outbound_queue, "TURN_BYTES", 20)
    monkeypatch.setattr(outbound_queue, "HANDOVER_BYTES", 8)


def queue(*sizes: int) -> tuple[OutboundQueue, list[int]]:
    """Return entries of given sizes, and the list of numbers of sent entries."""
    left: list[int] = []
    made = OutboundQueue(OutboundBuffer(WriteBufferMarks(2, 1)), PlainWriter(), lambda _: None)
    for number, size in enumerate(sizes):
        on_left = lambda number=number: left.append(number)  # noqa: E731
        made.add(OutboundEntry([bytes([number]) * size], size, on_left))
    return made, left


@pytest.mark.parametrize(
    ("sizes", "turns"),
    [([50], [20, 40, 50]), ([20], [20]), ([9, 9, 9, 9], [27, 36]), ([4] * 12, [24, 48]), ([], [0])],
)
def test_a_write_turn_is_bounded_even_if_the_kernel_accepts_every_byte(sizes, turns) -> None:
    made, left = queue(*sizes)
    transport, written = Transport(), list[int]()
    goes_on = made.hand_over(transport)
    written.append(len(transport.written))
    while goes_on:
        goes_on = made.drained(transport)
        written.append(len(transport.written))
    assert written == turns
    assert left == list(range(len(sizes)))
    wanted = b"".join(bytes([number]) * size for number, size in enumerate(sizes))
    assert (bytes(transport.written), len(made)) == (wanted, 0)


def test_an_entry_added_after_the_turn_is_over_waits_for_the_next_turn() -> None:
    made, _ = queue(9, 9, 9, 9)
    transport = Transport()
    assert made.hand_over(transport)
    made.add(OutboundEntry([b"more"], 4, None))
    assert not made.hand_over(transport)  # The requested turn begins.
    assert len(transport.written) == 27
    assert not made.drained(transport)
    assert transport.written.endswith(b"more")


def test_bytes_without_room_in_the_kernel_are_written_after_a_drain() -> None:
    made, left = queue(50)
    transport = Transport(room=15)
    assert not made.hand_over(transport)
    assert (len(transport.written), left) == (20, [])
    transport.room = 1_000
    assert made.drained(transport)
    assert not made.drained(transport)
    assert (len(transport.written), left) == (50, [0])

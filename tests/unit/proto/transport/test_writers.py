"""Batches become writes: immediate writes, and writes waiting for an empty transport."""

from weakref import ref

import numpy as np
import pytest

from limiter.flow.outbound_buffer import OutboundBuffer, WriteBufferMarks
from proto.transport.outbound_queue import OutboundEntry, OutboundQueue
from proto.transport.writers import PlainWriter, pieces


class Transport:
    """Records the buffers of each call as a list."""

    def __init__(self) -> None:
        self.writes: list[list[bytes]] = []

    def write(self, data: bytes) -> None:
        self.writelines([data])

    def writelines(self, data: list[bytes]) -> None:
        self.writes.append([bytes(one) for one in data])

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int) -> None:
        pass


class Filling(Transport):
    """Buffers writes until emptied by the test."""

    def __init__(self) -> None:
        super().__init__()
        self.pending_bytes = 0

    def writelines(self, data: list[bytes]) -> None:
        super().writelines(data)
        self.pending_bytes += sum(map(len, data))

    def get_write_buffer_size(self) -> int:
        return self.pending_bytes

    def is_closing(self) -> bool:
        return False


@pytest.fixture(autouse=True)
def steps_of_ten_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlainWriter, "step_bytes", 10)


def test_a_batch_within_a_step_is_written_immediately() -> None:
    writer, transport = PlainWriter(), Transport()
    sizes = [writer.begin(transport, [b"0123456789"]), writer.begin(transport, [b"01", b"234"])]
    assert sizes == [10, 5]
    assert transport.writes == [[b"0123456789"], [b"01", b"234"]]
    assert writer.more(transport) == 0


def test_a_batch_longer_than_a_step_is_written_step_by_step() -> None:
    writer, transport = PlainWriter(), Transport()
    sizes = [writer.begin(transport, [b"0123", b"4567", b"89ab"])]
    while sizes[-1]:
        sizes.append(writer.more(transport))
    assert sizes == [8, 4, 0]
    assert transport.writes == [[b"0123", b"4567"], [b"89ab"]]


def test_written_buffers_are_freed_before_their_entry_is_complete() -> None:
    # A large answer is freed stepwise, not all in the turn of departure.
    arrays = [np.zeros(8, np.uint8) for _ in range(3)]
    kept = [ref(array) for array in arrays]
    queue, transport, left = (
        OutboundQueue(OutboundBuffer(WriteBufferMarks()), PlainWriter(), lambda _: None),
        Filling(),
        [],
    )
    queue.add(OutboundEntry(list(map(memoryview, arrays)), 24, lambda: left.append(True)))
    del arrays
    queue.hand_over(transport)
    seen = [[one() is not None for one in kept]]
    while not left:
        transport.pending_bytes = 0
        queue.drained(transport)
        seen.append([one() is not None for one in kept])
    assert seen == [[False, True, True], [False, False, True], [False] * 3, [False] * 3]


def test_a_single_long_buffer_is_split_without_a_copy() -> None:
    writer, transport = PlainWriter(), Transport()
    data = bytes(range(25))
    sizes = [writer.begin(transport, [data, b"z"])]
    while sizes[-1]:
        sizes.append(writer.more(transport))
    assert sizes == [10, 10, 6, 0]
    assert b"".join(part for write in transport.writes for part in write) == data + b"z"
    assert all(part.obj is data for part in pieces([data], 10))

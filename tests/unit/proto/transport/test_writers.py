"""How batches become writes: what goes at once, and what waits for the transport to be empty."""

from __future__ import annotations

import pytest

from proto.transport import writers
from proto.transport.writers import PlainWriter


class Transport:
    """Records what it is given, one list a call."""

    def __init__(self) -> None:
        self.writes: list[list[bytes]] = []

    def write(self, data: bytes) -> None:
        self.writes.append([bytes(data)])

    def writelines(self, data: list[bytes]) -> None:
        self.writes.append([bytes(one) for one in data])


@pytest.fixture(autouse=True)
def steps_of_ten_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "PLAIN_STEP_BYTES", 10)


def test_what_is_no_longer_than_a_step_goes_at_once() -> None:
    # Given
    writer, transport = PlainWriter(), Transport()
    # When
    sizes = [writer.begin(transport, [b"0123456789"]), writer.begin(transport, [b"01", b"234"])]
    # Then
    assert sizes == [10, 5]
    assert transport.writes == [[b"0123456789"], [b"01", b"234"]]
    assert writer.more(transport) == 0


def test_what_is_longer_goes_step_by_step() -> None:
    # Given
    writer, transport = PlainWriter(), Transport()
    # When
    sizes = [writer.begin(transport, [b"0123", b"4567", b"89ab"])]
    while sizes[-1]:
        sizes.append(writer.more(transport))
    # Then
    assert sizes == [8, 4, 0]
    assert transport.writes == [[b"0123", b"4567"], [b"89ab"]]


def test_one_long_buffer_is_cut_without_a_copy() -> None:
    # Given
    writer, transport = PlainWriter(), Transport()
    data = bytes(range(25))
    # When
    sizes = [writer.begin(transport, [data, b"z"])]
    while sizes[-1]:
        sizes.append(writer.more(transport))
    # Then
    assert sizes == [10, 10, 6, 0]
    assert b"".join(part for write in transport.writes for part in write) == data + b"z"
    assert all(part.obj is data for part in writers.pieces([data], 10))

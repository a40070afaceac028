"""Cursors as bytes."""

from time import process_time

import pytest

from broker.messages.errors import MessageStoreError
from broker.messages.position import EARLIEST, LATEST, Position
from broker.messages.stores.managed_ledger import CursorState
from broker.messages.stores.sqlite.managed_ledger import cursor_bytes, cursor_state


@pytest.mark.parametrize(
    "state",
    [
        CursorState(EARLIEST),
        CursorState(LATEST),
        CursorState(
            Position(3, 4),
            {3: b"\x01\n\x02", 5: b""},
            {Position(3, 6): (-1, 2**62), Position(5, 0): ()},
            {"key": "a\nb"},
        ),
        CursorState(Position(3, 4), {}, {Position(3, 6): (2**64 - 1,)}, {}),
    ],
)
def test_a_cursor_state_is_read_back_from_its_bytes(state: CursorState) -> None:
    assert cursor_state(cursor_bytes(state)) == state


def test_a_cursor_with_many_holes_is_encoded_within_a_turn() -> None:
    acknowledged = {ledger: bytes(6_250) for ledger in range(20)}
    batches = {Position(1, entry): (1, 2) for entry in range(20_000)}
    state = CursorState(Position(0, 0), acknowledged, batches)
    seconds = []
    for _ in range(5):
        began = process_time()
        cursor_bytes(state)
        seconds.append(process_time() - began)
    assert min(seconds) < 0.02


@pytest.mark.parametrize(
    "value",
    [
        b"", b"\xff", b"[]\n", b'[[1], {}, [], [], 0, "q"]\n',
        b'[[1, 0], {}, [1], [], 0, "q"]\n', b'[[1, 0], {}, [], [], 5, "q"]\n1234567',
        b'[[1, 0], {}, [], [], 1, "q"]\n' + bytes(16) + b"\xff\xff\xff\x7f",
    ],
)  # fmt: skip
def test_invalid_cursor_bytes_are_refused(value: bytes) -> None:
    with pytest.raises(MessageStoreError, match="the stored state of a subscription: "):
        cursor_state(value)

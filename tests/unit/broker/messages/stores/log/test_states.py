"""Cursors and topics as bytes of the log."""

from __future__ import annotations

from time import process_time

import pytest

from broker.messages.managed_ledger import CursorState
from broker.messages.position import EARLIEST, LATEST, Position
from broker.messages.stores.log.records import IDS, PROPERTY, ItemKey
from broker.messages.stores.log.states import (
    TopicState,
    UnreadableStateError,
    cursor_bytes,
    cursor_state,
    state_of,
    topic_bytes,
    topic_state,
)


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
def test_a_cursor_comes_back(state: CursorState) -> None:
    assert cursor_state(cursor_bytes(state)) == state


def test_a_topic_comes_back() -> None:
    state = TopicState("persistent://t/n/ä", [(1, 1_000, 5), (2, 0, 0)])
    assert topic_state(topic_bytes(state)) == state


def test_a_cursor_with_many_holes_is_written_within_a_turn() -> None:
    # Given
    acknowledged = {ledger: bytes(6_250) for ledger in range(20)}
    batches = {Position(1, entry): (1, 2) for entry in range(20_000)}
    state = CursorState(Position(0, 0), acknowledged, batches)
    # When
    seconds = []
    for _ in range(5):
        began = process_time()
        cursor_bytes(state)
        seconds.append(process_time() - began)
    # Then
    assert min(seconds) < 0.02


@pytest.mark.parametrize(
    "value",
    [
        b"", b"\xff", b"{}", b"[]", b"5", b'["x"]', b'["x", []]', b'["x", [1, 0]]',
        b"[5, [1, 0, 0]]", b'["x", ["1", 0, 0]]', b'["x", [2, 5, 0, 1, 0, 0]]',
        b'["x", [1, 5, 0]]', b'["x", [1, 0, 0, 2, 0, 0]]', b"[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_topic_is_unreadable(value: bytes) -> None:
    with pytest.raises(UnreadableStateError):
        topic_state(value)


@pytest.mark.parametrize(
    "value",
    [
        b"", b"\xff", b"[]\n", b'[[1], {}, [], [], 0, "q"]\n', b'[["1", 0], {}, [], [], 0, "q"]\n',
        b'[[1, 0], [], [], [], 0, "q"]\n', b'[[1, 0], {"k": 5}, [], [], 0, "q"]\n',
        b'[[1, 0], {}, [1], [-5], 0, "q"]\n', b'[[1, 0], {}, [1], [], 0, "q"]\n',
        b'[[1, 0], {}, [], [], 0, "u"]\n', b'[[1, 0], {}, [], [], 5, "q"]\n1234567',
        b'[[1, 0], {}, [], [], 1, "q"]\n' + bytes(16) + b"\xff\xff\xff\x7f",
    ],
)  # fmt: skip
def test_what_is_no_cursor_is_unreadable(value: bytes) -> None:
    with pytest.raises(UnreadableStateError):
        cursor_state(value)


@pytest.mark.parametrize(("kind", "value"), [(IDS, b"x"), (IDS, b"9" * 30), (PROPERTY, b"\xff")])
def test_what_is_no_number_and_no_text_is_unreadable(kind: int, value: bytes) -> None:
    with pytest.raises(UnreadableStateError):
        state_of(ItemKey(0 if kind == IDS else 1, kind, "x"), value)

"""Cursors and topics as bytes of the log."""

from __future__ import annotations

import json
from array import array
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple, Union

from broker.messages.managed_ledger import CursorState
from broker.messages.position import Position
from broker.messages.stores.log.records import CURSOR, IDS, PROPERTY, TOPIC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.messages.stores.log.records import ItemKey

_WORD_RANGE = 1 << 64
_MOST_DIGITS = 19
_WORD_KINDS = ("q", "Q")


class UnreadableStateError(Exception):
    """A state that nobody wrote, although its checksum is right."""


State = Union["TopicState", CursorState, str, int]
"""The states an item may have, in the order of TOPIC, CURSOR, PROPERTY and IDS."""


class TopicState(NamedTuple):
    """A topic as it is stored.

    Attributes:
        name: Its full name.
        ledgers: Id, time of closing (0 for the open one), entries (of a closed one) of each.
    """

    name: str
    ledgers: Sequence[tuple[int, int, int]]


def state_of(key: ItemKey, value: bytes) -> State | None:
    """Return the state of an item from its bytes; None for a kind that this version does not know.

    Raises:
        UnreadableStateError: They are no such state.
    """
    if key.kind == TOPIC:
        return topic_state(value)
    if key.kind == CURSOR:
        return cursor_state(value)
    try:
        if key.kind == PROPERTY:
            return value.decode()
        return _number(value) if key.kind == IDS else None
    except ValueError as error:
        raise UnreadableStateError(str(error)) from None


def _number(value: bytes) -> int:
    number = int(value[:_MOST_DIGITS])
    if not _is_long(number) or len(value) > _MOST_DIGITS:
        raise ValueError("a number that is none of ours")
    return number


def topic_bytes(state: TopicState) -> bytes:
    """Return a topic's state as bytes."""
    return json.dumps([state.name, list(chain.from_iterable(state.ledgers))]).encode()


def topic_state(value: bytes) -> TopicState:
    """Return a topic's state from its bytes.

    Raises:
        UnreadableStateError: They are no such state.
    """
    try:
        name, figures = json.loads(value)
        ledgers = list(zip(figures[::3], figures[1::3], figures[2::3], strict=True))
    except (ValueError, TypeError, RecursionError) as error:
        raise UnreadableStateError(str(error)) from None
    if not isinstance(name, str) or not all(_is_long(one) for one in figures):
        raise UnreadableStateError("no name, or no numbers")
    is_open = [not closed_at for _, closed_at, _ in ledgers]
    if not ledgers or is_open != [False] * (len(ledgers) - 1) + [True]:
        raise UnreadableStateError("not just the last ledger is open")
    if any(one[0] >= following[0] for one, following in pairwise(ledgers)):
        raise UnreadableStateError("ledgers that are not in order")
    return TopicState(name, ledgers)


def _is_long(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < _WORD_RANGE >> 1


def cursor_bytes(state: CursorState) -> bytes:
    """Return a cursor's state as bytes: a line of JSON, then columns.

    A cursor can have a bitmap for each of many ledgers and tens of thousands of batches, and is
    written in one turn of the event loop.
    """
    words: array[int]
    try:
        words, kind = array("q", chain.from_iterable(state.batches.values())), "q"
    except OverflowError:
        unsigned = (word % _WORD_RANGE for word in chain.from_iterable(state.batches.values()))
        words, kind = array("Q", unsigned), "Q"
    bitmaps = state.acknowledged.values()
    head = [
        list(state.mark_delete),
        dict(state.properties),
        list(state.acknowledged),
        [len(bitmap) for bitmap in bitmaps],
        len(state.batches),
        kind,
    ]
    positions = array("q", chain.from_iterable(state.batches))
    lengths = array("I", [len(batch) for batch in state.batches.values()])
    columns = (positions.tobytes(), lengths.tobytes(), words.tobytes(), *bitmaps)
    return b"\n".join((json.dumps(head).encode(), b"".join(columns)))


def cursor_state(value: bytes) -> CursorState:
    """Return a cursor's state from its bytes.

    Raises:
        UnreadableStateError: They are no such state.
    """
    try:
        return _cursor_state(value)
    except (ValueError, TypeError, AttributeError, RuntimeError, OverflowError) as error:
        # A RuntimeError: it has fewer words than it says, or is nested too deeply.
        raise UnreadableStateError(str(error)) from None


def _cursor_state(value: bytes) -> CursorState:
    line, _, rest = value.partition(b"\n")
    mark_delete, properties, ledger_ids, bitmap_sizes, batches, kind = json.loads(line)
    numbers = (*(max(one, 0) for one in mark_delete), *ledger_ids, *bitmap_sizes, batches)
    texts = (*properties.keys(), *properties.values())
    if not (all(map(_is_long, numbers)) and all(isinstance(one, str) for one in texts)):
        raise ValueError("numbers or properties that no cursor has")
    if kind not in _WORD_KINDS:
        raise ValueError("words of an unknown kind")
    positions, lengths, words = array("q"), array("I"), array(kind)
    rest = _taken(positions, 2 * batches, rest)
    rest = _taken(lengths, batches, rest)
    rest = _taken(words, sum(lengths), rest)
    acknowledged: dict[int, bytes] = {}
    for ledger_id, size in zip(ledger_ids, bitmap_sizes, strict=True):
        acknowledged[ledger_id], rest = rest[:size], rest[size:]
    word = iter(words)
    left = {
        Position(ledger_id, entry_id): tuple(next(word) for _ in range(length))
        for ledger_id, entry_id, length in zip(
            positions[::2], positions[1::2], lengths, strict=True
        )
    }
    return CursorState(Position(*mark_delete), acknowledged, left, properties)


def _taken(column: array[int], count: int, data: bytes) -> bytes:
    """Fill a column from the beginning of some bytes; return the rest."""
    size = count * column.itemsize
    column.frombytes(data[:size])
    return data[size:]

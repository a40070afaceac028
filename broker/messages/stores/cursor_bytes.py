"""The state of a cursor as bytes."""

from __future__ import annotations

import json
from array import array
from itertools import chain

from broker.messages.errors import MessageStoreError
from broker.messages.position import Position
from broker.messages.stores.managed_ledger import CursorState

_WORD_RANGE = 1 << 64


def cursor_bytes(state: CursorState) -> bytes:
    """Return a cursor's state as bytes: a line of JSON, then columns.

    The encoding is fast, because a cursor may have many bitmaps and tens of thousands of batches,
    encoded in one turn.
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
    """Return a cursor's state from bytes.

    Raises:
        MessageStoreError: The bytes are not a valid state.
    """
    try:
        return _cursor_state(value)
    except (ValueError, TypeError, AttributeError, RuntimeError, OverflowError) as error:
        # A RuntimeError: too few words, or too deeply nested.
        raise MessageStoreError(f"the stored state of a subscription: {error}") from None


def _cursor_state(value: bytes) -> CursorState:
    line, _, rest = value.partition(b"\n")
    mark_delete, properties, ledger_ids, bitmap_sizes, batches, kind = json.loads(line)
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

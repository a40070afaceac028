"""Random acknowledgements of batches: only unacknowledged messages are left."""

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.messages.position import Position
from broker.messages.subscriptions.batch_acks import BatchAcks

SIZES = (1, 3, 64, 65, 130)
ACKS = st.tuples(st.integers(0, 3), st.sets(st.integers(0, 129)))
BEHIND = st.builds(Position, st.just(7), st.integers(-1, 4))


def words_without(taken: set[int], size: int) -> list[int]:
    """Return a Java BitSet's words for ``size`` messages without the given ones."""
    bits = sum(1 << bit for bit in range(size) if bit not in taken)
    words = []
    while bits:
        word = bits % 2**64
        words.append(word - 2**64 if word >= 2**63 else word)
        bits >>= 64
    return words


@settings(deadline=None)
@given(st.sampled_from(SIZES), st.lists(ACKS, max_size=12), BEHIND)
def test_an_entry_is_complete_once_each_message_was_acknowledged(size, acks, behind) -> None:
    batches = BatchAcks()
    left: dict[Position, set[int]] = {}
    for entry, taken in acks:
        position = Position(7, entry)
        before = left.get(position, set(range(size)))
        answer = batches.acknowledge(position, size, words_without(taken, size))
        after = before - taken
        assert answer == (len(before) - len(after), not after)
        if after:
            left[position] = after
        else:
            left.pop(position, None)
        assert_holds(batches, left, size)
    stored = batches.as_mapping()
    assert_holds(BatchAcks.of_mapping(stored), left, size)
    batches.discard_through(behind)
    assert_holds(batches, {one: bits for one, bits in left.items() if one > behind}, size)


def assert_holds(batches: BatchAcks, left: dict[Position, set[int]], size: int) -> None:
    assert len(batches) == len(left)
    for entry in range(4):
        position = Position(7, entry)
        assert (position in batches) == (position in left)
        if position in left:
            assert batches.left(position, size) == len(left[position])
            words = words_without(set(range(size)) - left[position], size)
            assert batches.words(position) == tuple(words)
        else:
            assert batches.left(position, size) == size
            assert batches.words(position) is None

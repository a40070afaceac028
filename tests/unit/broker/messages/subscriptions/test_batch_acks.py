"""Partially acknowledged batches; tests/properties has random sequences."""

import tracemalloc

import pytest

from broker.messages.position import Position
from broker.messages.subscriptions import batch_acks
from broker.messages.subscriptions.batch_acks import MOST_MESSAGES, MOST_SAVED, BatchAcks

ENTRY = Position(7, 0)


def test_only_remaining_bits_count_and_the_last_bit_completes_the_entry() -> None:
    batches = BatchAcks()
    # Of ten messages 0 and 1, then 1 and 2, then the rest.
    assert batches.acknowledge(ENTRY, 10, [0b1111111100]) == (2, False)
    assert batches.acknowledge(ENTRY, 10, [0b1111111001]) == (1, False)
    assert batches.words(ENTRY) == (0b1111111000,)
    assert batches.left(ENTRY, 10) == 7
    assert batches.acknowledge(ENTRY, 10, [0b0000000111]) == (7, True)
    assert batches.words(ENTRY) is None


@pytest.mark.parametrize("ack_set", [[0], [], [0, 0]])
def test_an_ack_set_of_zeros_completes_the_entry(ack_set: list[int]) -> None:
    assert BatchAcks().acknowledge(ENTRY, 100, ack_set) == (100, True)


def test_ack_set_words_are_signed_and_missing_words_are_zeros() -> None:
    batches = BatchAcks()
    # Only messages 63 and 65 are left, then the word with 65 is removed.
    batches.acknowledge(ENTRY, 70, [-(2**63), 2])
    both = batches.words(ENTRY)
    batches.acknowledge(ENTRY, 70, [-1])
    assert both == (-(2**63), 2)
    assert batches.words(ENTRY) == (-(2**63),)


def test_bits_beyond_the_batch_are_not_counted() -> None:
    batches = BatchAcks()
    answer = batches.acknowledge(ENTRY, 3, [-2, -1])
    assert answer == (1, False)
    assert batches.words(ENTRY) == (0b110,)


def test_an_entry_without_acknowledged_messages_keeps_all_its_bits() -> None:
    batches = BatchAcks()
    answer = batches.acknowledge(ENTRY, 3, [0b111])
    assert answer == (0, False)
    assert batches.words(ENTRY) == (0b111,)
    assert batches.left(ENTRY, 3) == 3


def test_an_impossible_batch_size_uses_no_memory() -> None:
    batches = BatchAcks()
    tracemalloc.start()
    answer = batches.acknowledge(ENTRY, 2**31 - 1, [-2])
    most_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert answer == (0, False)
    assert len(batches) == 0
    assert most_bytes < 10_000


def test_a_very_large_batch_is_acknowledged_only_as_a_whole() -> None:
    batches = BatchAcks()
    most, more = [-2] + [-1] * 156, [-2] + [-1] * 157
    assert batches.acknowledge(ENTRY, MOST_MESSAGES, most) == (1, False)
    assert len(batches.words(ENTRY) or ()) == 157
    assert batches.acknowledge(Position(7, 1), MOST_MESSAGES + 1, more) == (0, False)
    assert batches.acknowledge(Position(7, 1), MOST_MESSAGES + 1, [0]) == (MOST_MESSAGES + 1, True)
    assert batches.words(Position(7, 1)) is None


def test_words_beyond_the_batch_are_not_read() -> None:
    batches = BatchAcks()
    answer = batches.acknowledge(ENTRY, 100, [-1, -2, *range(1_000)])
    assert answer == (1, False)
    assert len(batches.words(ENTRY) or ()) == 2


def test_only_the_first_of_very_many_partial_batches_are_stored() -> None:
    batches = BatchAcks()
    for entry in range(MOST_SAVED + 5):
        batches.acknowledge(Position(7, entry), 2, [0b10])
    stored = batches.as_mapping()
    assert (len(stored), max(stored)) == (MOST_SAVED, Position(7, MOST_SAVED - 1))
    assert BatchAcks.of_mapping(stored).words(ENTRY) == (0b10,)


def test_discarded_batches_are_forgotten_immediately_and_freed_in_steps() -> None:
    batches = BatchAcks()
    for entry in range(5_000):
        batches.acknowledge(Position(7, entry), 2, [0b10])
    batches.discard_through(Position(7, 4_998))
    assert (len(batches), Position(7, 4_999) in batches) == (1, True)
    left = [len(batches.gone) for _ in batches.freed()]
    assert left == [3, 2, 1, 0]


def test_stored_words_are_computed_only_on_access(monkeypatch) -> None:
    batches, made = BatchAcks(), []
    for entry in range(3):
        batches.acknowledge(Position(7, entry), 2, [0b10])
    words = batch_acks._words
    monkeypatch.setattr(batch_acks, "_words", lambda bits: made.append(bits) or words(bits))
    stored = batches.as_mapping()
    batches.discard(Position(7, 1))
    before = len(made)
    # Unchanged
    assert (before, dict(stored)) == (0, {Position(7, entry): (0b10,) for entry in range(3)})
    with pytest.raises(KeyError):
        stored[Position(7, 3)]


def test_added_and_discarded_entries_leave_nothing_behind() -> None:
    batches = BatchAcks()
    for _ in range(1_000):
        batches.acknowledge(ENTRY, 3, [0b110])
        batches.discard(ENTRY)
    assert len(batches) == 0
    assert not batches.gone

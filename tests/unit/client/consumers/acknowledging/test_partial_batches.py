"""Batches track their acknowledged messages."""

from client.consumers.acknowledging import partial_batches
from client.consumers.acknowledging.partial_batches import PartialBatch, PartialBatches


def test_ack_set_bits_match_the_java_client() -> None:
    # Given a batch of 70 with 0 to 64 acknowledged
    batch = PartialBatch(70)
    for index in range(65):
        assert batch.acknowledge(index)
    assert batch.ack_set() == (0, 62)
    assert batch.left == 5
    assert not batch.acknowledge(3)
    assert not batch.acknowledge(1_000)
    assert batch.is_acknowledged(64)
    assert not batch.is_acknowledged(65)


def test_a_word_with_its_highest_bit_set_is_negative() -> None:
    batch = PartialBatch(64)
    batch.acknowledge(0)
    assert batch.ack_set() == (-2,)


def test_acknowledge_up_to_acknowledges_every_earlier_message_of_the_batch() -> None:
    batch = PartialBatch(10)
    batch.acknowledge(8)
    batch.acknowledge_up_to(6)
    assert batch.ack_set() == (0b1010000000,)
    assert batch.left == 2


def test_the_least_recently_used_batch_is_forgotten_at_the_limit(monkeypatch) -> None:
    monkeypatch.setattr(partial_batches, "MOST_BATCHES", 2)
    batches = PartialBatches()
    for entry in range(2):
        batches.begin((1, entry), 2).acknowledge(0)
    batches.begin((1, 0), 2)
    batches.begin((1, 2), 2)
    assert batches.get((1, 1)) is None
    assert batches.get((1, 0)) is not None
    assert len(batches) == 2

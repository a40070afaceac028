from itertools import product

import pytest

from client.messages.message_id import MessageId

LARGEST = 2**63 - 1
# Bytes returned by pulsar.MessageId(partition, ledger_id, entry_id, batch_index).serialize().
OFFICIAL = {
    (-1, 12, 34, -1): "080c1022",
    (0, 12, 34, -1): "080c10221800",
    (5, 12, 34, 7): "080c102218052007",
    (-1, 12, 34, 0): "080c10222000",
    (-1, -1, -1, -1): "08ffffffffffffffffff0110ffffffffffffffffff01",
    (-1, LARGEST, LARGEST, -1): "08ffffffffffffffff7f10ffffffffffffffff7f",
}


@pytest.mark.parametrize(("place", "data"), OFFICIAL.items())
def test_serialized_ids_equal_the_official_clients(place, data) -> None:
    message_id = MessageId(*place)
    assert message_id.serialize().hex() == data
    read = MessageId.deserialize(bytes.fromhex(data), "t")
    assert read == message_id
    assert read.topic_name == "t"
    assert (read.partition(), read.ledger_id(), read.entry_id(), read.batch_index()) == place


def test_earliest_and_latest_have_the_official_clients_bytes() -> None:
    assert MessageId.earliest.serialize().hex() == OFFICIAL[(-1, -1, -1, -1)]
    assert MessageId.latest.serialize().hex() == OFFICIAL[(-1, LARGEST, LARGEST, -1)]
    assert MessageId.earliest < MessageId(-1, 0, 0) < MessageId.latest


def test_serialized_ids_keep_batch_size_and_first_chunk() -> None:
    first = MessageId(1, 2, 3)
    message_id = MessageId(1, 2, 5, 4, batch_size=9, first_chunk=first)
    read = MessageId.deserialize(message_id.serialize())
    assert (read.batch_size, read.first_chunk) == (9, first)
    assert str(read) == "(2,3,1,-1);(2,5,1,4)"  # As displayed by the official client.


@pytest.mark.parametrize("data", [b"", b"\x08", b"\x08\x01", b"\xff" * 5, b"hello"])
def test_invalid_serialized_ids_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no message id"):
        MessageId.deserialize(data)


def test_ids_are_ordered_by_ledger_entry_and_batch_index() -> None:
    ids = [MessageId(-1, *place) for place in product([0, 1], [0, 2], [-1, 0, 3])]
    assert sorted({*ids}) == ids
    for (at, one), (place, other) in product(enumerate(ids), repeat=2):
        assert (one < other, one <= other) == (at < place, at <= place)
        assert (one > other, one >= other) == (at > place, at >= place)
        assert (one == other, one != other) == (at == place, at != place)
    assert len({*ids, MessageId(-1, 0, 0, -1, batch_size=3)}) == len(ids)


def test_the_text_of_an_id_equals_the_official_clients() -> None:
    assert str(MessageId(3, 1, 2, 4)) == "(1,2,3,4)"


def test_comparing_an_id_with_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match="not supported between instances of 'MessageId' and 'int'"):
        assert MessageId.earliest < 5  # type: ignore[operator]

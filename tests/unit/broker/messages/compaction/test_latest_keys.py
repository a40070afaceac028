"""The last message of each key; tests/properties has random topics."""

from time import process_time

import pytest

import proto.PulsarApi_pb2 as pb
from broker.messages.compaction.latest_keys import LatestKeys, TooManyKeysError
from broker.messages.entry import Entry
from broker.messages.metadata import digest_of, parse_metadata
from broker.messages.publishing.checks import whatever_metadata
from tests.support.stepwise import finished
from tests.support.subscriptions.messages import message, single

ONE_TURN = 0.02


def entries(*data: bytes) -> list[Entry]:
    return [
        Entry(3, number, one, digest_of(whatever_metadata(one))) for number, one in enumerate(data)
    ]


def kept(*data: bytes) -> tuple[list[Entry], LatestKeys]:
    """Run both passes; return the retained entries, and the counts."""
    keys = LatestKeys()
    finished(keys.note(entries(*data)))
    keys.second_pass()
    return finished(keys.kept(entries(*data))), keys


def left(*data: bytes) -> list[int]:
    """Return the numbers of the retained entries."""
    return [entry.entry_id for entry in kept(*data)[0]]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([message(b"1", key="a"), message(b"2", key="b"), message(b"3", key="a")], [1, 2]),
        ([message(b"1", key="a"), message(b"", key="a", null_value=True)], []),
        ([message(b"1", key="a"), message(b"", key="a")], []),
        ([message(b"1", key="a"), message(b"", key="a"), message(b"2", key="a")], [2]),
        ([message(b"1"), message(b"2", key="")], [1]),
        ([message(b"", key="a", compression=1, uncompressed_size=5)], [0]),
        ([message(b"not a batch", key="a", count=3), message(b"2", key="a")], [0, 1]),
        ([message(b"", num_messages_in_batch=0)], [0]),
        ([message(single(b"1", partition_key="a"), num_messages_in_batch=-1)], [0]),
        ([b"\0\0\0\1\xff"], [0]),
    ],
    ids=[
        "last",
        "null",
        "empty",
        "again",
        "without key",
        "compressed",
        "damaged batch",
        "batch of none",
        "batch of fewer than none",
        "unreadable",
    ],
)
def test_only_the_last_value_of_each_key_is_retained(
    data: list[bytes], expected: list[int]
) -> None:
    assert left(*data) == expected


def test_a_batch_whose_metadata_lacks_a_required_field_is_retained_whole() -> None:
    metadata = pb.MessageMetadata(sequence_id=1, publish_time=1, num_messages_in_batch=2)
    head = metadata.SerializePartialToString()
    batch = single(b"1", partition_key="a") + single(b"2", partition_key="a")
    assert left(len(head).to_bytes(4, "big") + head + batch) == [0]


def test_a_batch_retains_only_the_last_message_of_each_key() -> None:
    batch = (
        single(b"1", partition_key="a")
        + single(b"2", partition_key="b")
        + single(b"3", partition_key="a")
        + single(b"4")
        + single(b"", partition_key="c", null_value=True)
    )
    (entry,), keys = kept(message(b"0", key="c"), message(batch, count=5))
    assert entry.entry_id == 1
    assert list(parse_metadata(entry.data).compacted_batch_indexes) == [1, 2]
    assert entry.message_count == 5
    assert keys.removed == 3


def test_keys_above_the_memory_bound_are_refused() -> None:
    keys = LatestKeys(most_bytes=1_000)
    with pytest.raises(TooManyKeysError, match="its keys take more than 1000 bytes of memory"):
        finished(keys.note(entries(*[message(b"1", key=f"k{n}") for n in range(20)])))


def test_deleted_keys_use_no_memory() -> None:
    keys = LatestKeys(most_bytes=1_000)
    for number in range(50):
        data = [message(b"1", key=f"k{number}"), message(b"", key=f"k{number}")]
        finished(keys.note(entries(*data)))
    assert keys.removed == 50


@pytest.mark.usefixtures("seldom_collected")
def test_a_batch_of_many_messages_is_processed_in_short_steps() -> None:
    batch = b"".join(single(b"", partition_key=f"{n}") for n in range(50_000))
    data = entries(message(batch, count=50_000))
    keys = LatestKeys()
    turns = []
    start = process_time()
    for _ in keys.note(data):
        turns.append(process_time() - start)
        start = process_time()
    assert len(turns) > 200
    assert max(turns) < ONE_TURN

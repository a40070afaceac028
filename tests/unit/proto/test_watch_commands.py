"""Commands of watches, hand-encoded: protobuf reads them back."""

import struct
import tracemalloc

import pytest

import proto.PulsarApi_pb2 as pb
from proto.watch_commands import (
    NEW_TOPIC_TAG,
    TOPIC_TAG,
    WatchUpdate,
    command_bytes,
    encode_changes,
    encode_names,
    watch_success,
)

IDS = pytest.mark.parametrize("number", [0, 1, 127, 128, 2**32, 2**63, 2**64 - 1])
NAMES = [b"persistent://t/n/a", "persistent://t/n/tópico".encode(), b"", b"x" * 127, b"y" * 128]
LONG = [b"l" * 511, b"l" * 512, b"l" * 70_000]


def texts(names: list[bytes]) -> list[str]:
    return [name.decode() for name in names]


def parsed(frame: bytes) -> pb.BaseCommand:
    """Decode a frame, checking lengths and equality with protobuf's bytes."""
    total, size = struct.unpack_from(">II", frame)
    assert (total, size) == (len(frame) - 4, len(frame) - 8)
    command = pb.BaseCommand.FromString(frame[8:])
    assert command.SerializeToString(deterministic=True) == frame[8:]
    return command


@IDS
def test_a_watch_response_has_request_id_and_watcher_id(number: int) -> None:
    answer = watch_success(number, 2**64 - 1 - number, [encode_names(NAMES, TOPIC_TAG)], "0a1b2c3d")
    success = parsed(b"".join(answer.buffers)).watchTopicListSuccess
    assert (success.request_id, success.watcher_id) == (number, 2**64 - 1 - number)
    assert (list(success.topic), success.topics_hash) == (texts(NAMES), "0a1b2c3d")


@pytest.mark.parametrize("size", [1, 2, 8])
def test_the_names_of_a_watch_response_may_be_in_any_number_of_parts(size: int) -> None:
    names = NAMES + LONG
    parts = [
        encode_names(names[start : start + size], TOPIC_TAG) for start in range(0, len(names), size)
    ]
    answer = watch_success(1, 2, parts, "00000000")
    assert list(parsed(b"".join(answer.buffers)).watchTopicListSuccess.topic) == texts(names)
    assert all(part in answer.buffers for part in parts)


def test_a_watch_response_without_names_is_encoded() -> None:
    answer = watch_success(1, 2, [], "00000000")
    success = parsed(b"".join(answer.buffers)).watchTopicListSuccess
    assert (list(success.topic), success.topics_hash) == ([], "00000000")


def test_the_sizes_of_a_watch_response_match_its_bytes() -> None:
    answer = watch_success(1, 2, [encode_names(LONG, TOPIC_TAG)], "00000000")
    assert answer.size == sum(map(len, answer.buffers)) == answer.command_bytes + 8


@IDS
def test_an_update_has_the_id_of_its_watcher(number: int) -> None:
    update = WatchUpdate(encode_changes(NAMES, LONG), "0a1b2c3d")
    told = parsed(update.frame(number)).watchTopicUpdate
    assert told.watcher_id == number
    assert (list(told.new_topics), list(told.deleted_topics)) == (texts(NAMES), texts(LONG))
    assert told.topics_hash == "0a1b2c3d"


@pytest.mark.parametrize(("added", "removed"), [([], []), (NAMES, []), ([], NAMES)])
def test_an_update_may_lack_new_or_deleted_topics(added: list[bytes], removed: list[bytes]) -> None:
    update = WatchUpdate(encode_changes(added, removed), "00000000")
    told = parsed(update.frame(1)).watchTopicUpdate
    assert (list(told.new_topics), list(told.deleted_topics)) == (texts(added), texts(removed))


def test_an_update_of_many_names_may_be_in_parts() -> None:
    parts = [encode_names(NAMES, NEW_TOPIC_TAG), encode_names(LONG, TOPIC_TAG)]
    whole, update = WatchUpdate(b"".join(parts), "0" * 8), WatchUpdate(b"", "0" * 8, parts)
    assert update.frame(5) == whole.frame(5) == b"".join(update.buffers(5))
    assert update.body_bytes == whole.body_bytes
    assert update.buffers(5)[1] is parts[0]


def test_watchers_with_the_same_id_share_a_frame() -> None:
    update = WatchUpdate(encode_changes(NAMES, []), "00000000")
    assert update.frame(7) is update.frame(7)
    assert update.frame(8) is not update.frame(7)


def test_an_update_keeps_a_single_frame_for_any_number_of_ids() -> None:
    update = WatchUpdate(b"x" * 10_000, "00000000")
    update.frame(0)
    tracemalloc.start()
    for watcher_id in range(100):
        update.frame(watcher_id)
    kept_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept_bytes < 50_000


def test_watchers_of_different_ids_share_the_encoded_names() -> None:
    update = WatchUpdate(encode_changes(NAMES, []), "00000000")
    one, other = update.buffers(7), update.buffers(2**40)
    assert one[1] is other[1]
    assert (b"".join(one), b"".join(other)) == (update.frame(7), update.frame(2**40))


def test_the_size_of_the_command_excludes_the_frame_head() -> None:
    update = WatchUpdate(encode_changes(NAMES, []), "00000000")
    size_bytes = parsed(update.frame(7)).ByteSize()
    assert command_bytes(update.frame(7)) == command_bytes(*update.buffers(7)) == size_bytes


@pytest.mark.parametrize("names", [NAMES, LONG, []])
def test_the_reported_size_of_the_shared_body_matches_its_bytes(names: list[bytes]) -> None:
    update = WatchUpdate(encode_changes(names, []), "00000000")
    sizes = {len(update.frame(1)) - update.body_bytes, len(update.frame(127)) - update.body_bytes}
    assert len(sizes) == 1
    assert update.body_bytes == len(encode_names(names, NEW_TOPIC_TAG)) + 10

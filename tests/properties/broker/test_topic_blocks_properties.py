"""A sequence of blocks equals the sorted set of its names, however made."""

from unittest.mock import patch

import google_crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from broker.topic_lists import block
from broker.topic_lists import tree as topic_tree
from broker.topic_lists.block import Block
from broker.topic_lists.sequence import TopicSequence
from proto.topic_hash import combine_crc, combine_joined, java_order, joined_crc, topics_hash

# Few characters, so that names meet: plain ones, and both sides of each border in either order.
CHARACTERS = st.one_of(
    st.sampled_from("ab-/:,.\u00e9\u4e2d\ud7ff\ue000\uf123\uffff\U00010000\U0001f600\U0010ffff"),
    st.sampled_from("ab-/\ue000\ufffd\U00010000\U0001f600"),
)
TEXTS = st.one_of(
    st.text(CHARACTERS, min_size=1, max_size=6),
    st.builds(
        lambda text, times: (text * times)[:75], st.text(CHARACTERS, min_size=1), st.just(75)
    ),
)
NAME_LISTS = st.lists(TEXTS, max_size=40)


def numbered(start: int, count: int) -> list[str]:
    """Return consecutive names, of the same few blocks."""
    return [f"persistent://tenant/ns/{number:04d}" for number in range(start, start + count)]


RUNS = st.builds(numbered, st.integers(0, 400), st.integers(0, 300))
MANY = settings(max_examples=60, deadline=None)


def in_javas_order(names: set[str]) -> list[str]:
    """Sort as the recipe says: by UTF-16 code units."""
    return sorted(names, key=lambda name: name.encode("utf-16-be"))


def encoded(names: list[str] | set[str]) -> list[bytes]:
    return [name.encode() for name in names]


def check(sequence: TopicSequence, names: set[str]) -> None:
    """Compare a sequence's figures with its names."""
    expected = in_javas_order(names)
    assert [name.decode() for name in sequence.names()] == expected
    assert sequence.hash == topics_hash(names)
    totals = sequence.totals
    assert len(sequence) == totals.count == len(names)
    assert totals.wire_bytes == sum(map(len, sequence.wire_parts))
    assert totals.estimated_bytes == sum(len(name.encode()) + 32 for name in names)


@MANY
@given(NAME_LISTS)
def test_a_sequence_equals_the_sorted_set_of_its_names(names: list[str]) -> None:
    check(TopicSequence.from_names(encoded(names)), set(names))


@MANY
@given(NAME_LISTS)
def test_the_lifted_bytes_of_names_sort_like_java_strings(names: list[str]) -> None:
    by_bytes = sorted(set(names), key=lambda name: java_order(name.encode()))
    assert by_bytes == in_javas_order(set(names))


@MANY
@given(NAME_LISTS)
def test_the_wire_bytes_parse_as_the_protobuf_field(names: list[str]) -> None:
    sequence = TopicSequence.from_names(encoded(names))
    response = pb.CommandGetTopicsOfNamespaceResponse()
    response.ParseFromString(b"\x08\x00" + b"".join(sequence.wire_parts))
    assert list(response.topics) == in_javas_order(set(names))


@MANY
@given(
    st.lists(
        st.integers(0, 600) | st.sampled_from([127, 128, 511, 512, 20_000]), min_size=1, max_size=20
    ),
    st.sampled_from([0x12, 0x41]),
)
def test_names_of_a_block_are_read_back_from_its_wire_bytes(sizes: list[int], byte: int) -> None:
    names = [bytes([byte, 0x80 | index])[:size] * -(-size // 2) for index, size in enumerate(sizes)]
    made = Block.of_names(names)
    assert made.names() == names
    for columns in (True, False):
        with patch.object(block, "HAS_COLUMNS", columns):
            assert Block(made.wire, made.offsets).totals == made.totals


@MANY
@given(NAME_LISTS, NAME_LISTS, NAME_LISTS)
def test_a_changed_sequence_equals_a_rebuilt_sequence(names, added, removed) -> None:
    gone = {*removed, *names[::3]}
    before = TopicSequence.from_names(encoded(names))
    after = before.apply(encoded(added), encoded(gone))
    check(after, (set(names) | set(added)) - gone)
    check(before, set(names))


@MANY
@given(RUNS, st.lists(st.tuples(RUNS, RUNS), min_size=1, max_size=3))
def test_a_sequence_changed_deep_in_its_tree_equals_a_rebuilt_sequence(names, changes) -> None:
    # Blocks of about ten names, three to a branch
    with patch.multiple(topic_tree, BLOCK_BYTES=300, BRANCH_CHILDREN=3):
        expected = set(names)
        sequence = TopicSequence.from_names(encoded(names))
        for added, removed in changes:
            sequence = sequence.apply(encoded(added), encoded(removed))
            expected = (expected | set(added)) - set(removed)
            check(sequence, expected)
            assert all(name.encode() in sequence for name in list(expected)[:20])
            assert not any(name.encode() in sequence for name in set(removed) - expected)


@MANY
@given(NAME_LISTS, NAME_LISTS)
def test_a_sequence_contains_exactly_its_names(names: list[str], others: list[str]) -> None:
    sequence = TopicSequence.from_names(encoded(names))
    for name in {*names, *others}:
        assert (name.encode() in sequence) == (name in names)


@MANY
@given(st.binary(max_size=300), st.binary(max_size=300))
def test_the_crc_of_a_whole_is_combined_from_its_parts(first: bytes, second: bytes) -> None:
    combined = combine_crc(google_crc32c.value(first), google_crc32c.value(second), len(second))
    assert combined == google_crc32c.value(first + second)


@MANY
@given(st.lists(st.binary(max_size=9), max_size=5), st.lists(st.binary(max_size=9), max_size=5))
def test_the_crc_of_a_list_is_combined_from_its_parts(first, second) -> None:
    combined = combine_joined((len(first), *joined_crc(first)), (len(second), *joined_crc(second)))
    assert combined == joined_crc(first + second)

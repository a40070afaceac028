"""Blocks: their size, and sharing between versions."""

from broker.topic_lists import tree
from broker.topic_lists.block import Block, Totals, encode_entry
from broker.topic_lists.sequence import Selection, TopicSequence
from broker.topic_lists.tree import BLOCK_BYTES, BRANCH_CHILDREN, Branch
from proto.topic_hash import EMPTY_HASH


def names_of(count: int, start: int = 0, width: int = 6) -> list[bytes]:
    return [b"persistent://tenant/ns/%0*d" % (width, number) for number in range(start, count)]


def test_a_name_is_encoded_as_a_protobuf_topics_field() -> None:
    assert encode_entry(b"abc") == b"\x12\x03abc"
    assert encode_entry(b"x" * 127)[:2] == b"\x12\x7f"
    assert encode_entry(b"x" * 128)[:3] == b"\x12\x80\x01"
    assert encode_entry(b"x" * 512)[:3] == b"\x12\x80\x04"


def test_names_of_any_length_are_read_back_from_a_block() -> None:
    names = [b"a", b"x" * 127, b"y" * 128, b"z" * 70_000, b""]
    assert Block.of_names(names).names() == names


def test_an_empty_sequence_has_the_empty_hash_and_accepts_changes() -> None:
    sequence = TopicSequence.from_names([])
    assert (len(sequence), sequence.hash, sequence.wire_parts) == (0, EMPTY_HASH, ())
    assert sequence.totals == Totals()
    assert b"a" not in sequence
    assert list(sequence.apply([b"b", b"a"], []).names()) == [b"a", b"b"]
    assert repr(sequence) == "<TopicSequence 0 names, 0 bytes>"


def test_blocks_have_equal_sizes_up_to_their_bound() -> None:
    sequence = TopicSequence.from_names(names_of(20_000))
    sizes = [len(part) for part in sequence.wire_parts]
    assert len(sizes) > 5
    assert max(sizes) <= BLOCK_BYTES + 200
    assert max(sizes) - min(sizes) < 400
    assert sequence.totals.wire_bytes == sum(sizes)


def test_the_wire_parts_are_computed_once() -> None:
    sequence = TopicSequence.from_names(names_of(10))
    assert sequence.wire_parts is sequence.wire_parts


def test_a_change_of_a_single_name_replaces_a_single_block() -> None:
    before = TopicSequence.from_names(names_of(20_000))
    after = before.apply([b"persistent://tenant/ns/010000a"], [])
    kept = set(before.blocks()) & set(after.blocks())
    assert len(kept) == len(list(before.blocks())) - 1
    assert len(after) == len(before) + 1


def test_an_empty_change_returns_the_same_version() -> None:
    sequence = TopicSequence.from_names(names_of(10))
    assert sequence.apply([], []) is sequence


def test_a_name_both_added_and_removed_is_removed() -> None:
    sequence = TopicSequence.from_names([b"a"])
    assert list(sequence.apply([b"a", b"b"], [b"a", b"b"]).names()) == []
    assert list(TopicSequence().apply([b"a", b"b"], [b"a"]).names()) == [b"b"]


def test_an_encoded_entry_inside_a_name_is_not_found_as_a_name() -> None:
    sequence = TopicSequence.from_names([b"x" + encode_entry(b"zz")])
    assert b"zz" not in sequence


def test_removing_all_names_gives_an_empty_sequence() -> None:
    names = names_of(20_000)
    empty = TopicSequence.from_names(names).apply([], names)
    assert (len(empty), empty.hash, list(empty.blocks())) == (0, EMPTY_HASH, [])


def test_blocks_that_shrink_by_deletions_are_merged() -> None:
    names = names_of(20_000)
    sequence = TopicSequence.from_names(names)
    for start in range(0, len(names), 1_000):
        sequence = sequence.apply([], names[start : start + 990])
    assert len(sequence) == 200
    assert len(list(sequence.blocks())) == 1


def test_branches_stay_small_in_a_deep_tree() -> None:
    names = names_of(16_000, width=400)
    sequence = TopicSequence.from_names(names)
    root = sequence._root
    assert isinstance(root, Branch)
    assert len(sequence.wire_parts) > BRANCH_CHILDREN
    assert all(isinstance(child, Branch) for child in root.children)
    assert max(len(child.children) for child in root.children if isinstance(child, Branch)) <= (
        BRANCH_CHILDREN
    )
    assert names[12_345] in sequence
    assert names[12_345] + b"x" not in sequence


def test_a_selection_is_finished_in_steps_with_an_equal_result(monkeypatch) -> None:
    source = TopicSequence.from_sorted(names_of(20_000))
    wanted, made = Selection(source), Selection(source)
    for block in list(source.blocks())[1:]:
        wanted.keep_block(block)
        made.keep_block(block)
    monkeypatch.setattr(tree, "BRANCHES_A_STEP", 1)
    work, steps = made.finishing(), 0
    while True:
        try:
            next(work)
        except StopIteration as done:
            found: TopicSequence = done.value
            break
        steps += 1
    assert found.hash == wanted.sequence().hash
    assert steps > 1

"""The sets to which changed names belong."""

from typing import Any, cast

from broker.patterns import index as pattern_index
from broker.patterns.filter import PatternFilter
from broker.patterns.index import PatternIndex
from broker.patterns.pattern import RegexImplementation
from broker.topic_lists import tree
from broker.topic_lists.sequence import TopicListing, TopicSequence
from broker.watches.sets.changing import ChangeMatching, matching_for
from server.tasks.cooperative import Steps


def test_names_matched_by_a_backtracking_pattern_are_noted_a_block_per_step(monkeypatch) -> None:
    monkeypatch.setattr(tree, "BLOCK_BYTES", 500)
    names = [f"persistent://t/n/{number:04d}".encode() for number in range(100)]
    sequence = TopicSequence.from_sorted(names)
    matching, watched = ChangeMatching(PatternIndex()), cast("Any", object())
    steps = len(list(matching.noting(watched, TopicListing(sequence))))
    assert steps == len(list(sequence.blocks())) > 3
    assert [matching.of(name) for name in (names[0], names[99], b"persistent://t/n/x")] == [
        [watched],
        [watched],
        [],
    ]


async def test_new_patterns_are_compiled_before_the_first_name_is_matched(monkeypatch) -> None:
    # 5,000 new patterns between two changes held the loop for 34 ms, 64 of `.{1000}` for 64.
    index = PatternIndex[Any]()
    for number in range(200):
        index.add(number, f"t/n/{number}", RegexImplementation.RE2J)
    unused = cast("PatternFilter", None)
    matching = await matching_for([b"persistent://t/n/7"], index, unused, lambda _: None, Steps())
    monkeypatch.delattr(pattern_index, "_set_of")
    assert matching.of(b"persistent://t/n/7") == [7]

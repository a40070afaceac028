"""The benchmark of watches keeps what it says, and its clients notice what they are told wrong."""

from __future__ import annotations

import re

import pytest

from benchmarks.watches.changes import CASES, WATCHERS, Found, conclude
from benchmarks.watches.client import UPDATE, Frames
from benchmarks.watches.corpus import (
    NAME_BYTES,
    NAMES,
    event_names,
    kept_without,
    pattern_without,
    watched_names,
)
from benchmarks.watches.names import FirstStates, WatchedNames, WatchError
from proto.topic_hash import topics_hash
from proto.watch_commands import WatchUpdate, encode_changes

NAMES_ABC = ["persistent://t/n/a", "persistent://t/n/b", "persistent://t/n/c"]


def state(names: list[str]) -> WatchedNames:
    return FirstStates().of(names, topics_hash(names))


# -- the names and patterns -----------------------------------------------------------------------


def test_names_are_of_one_size_and_distinct() -> None:
    names = [*watched_names(), *event_names(range(NAMES))]
    assert {len(name) for name in names} == {NAME_BYTES}
    assert len(set(names)) == 2 * NAMES


@pytest.mark.parametrize("number", [0, 21, 399])
def test_a_pattern_keeps_all_but_one_ending(number: int) -> None:
    pattern = re.compile(pattern_without(number))
    kept = [name for name in watched_names() if pattern.fullmatch(name)]
    assert kept == kept_without(number)
    assert 9_900 <= len(kept) < NAMES


def test_every_pattern_keeps_the_names_that_come() -> None:
    names = event_names((0, 4_321, NAMES - 1))
    for number in range(WATCHERS):
        assert all(re.fullmatch(pattern_without(number), name) for name in names)


def test_all_patterns_keep_different_sets() -> None:
    assert len({tuple(kept_without(number)) for number in range(WATCHERS)}) == WATCHERS


# -- what a client notices ------------------------------------------------------------------------


def test_an_update_leads_to_the_names_after_it() -> None:
    after = ["persistent://t/n/aa", *NAMES_ABC[1:]]
    found = state(NAMES_ABC).after(after[:1], NAMES_ABC[:1], topics_hash(after))
    assert [name.decode() for name in found.names] == after


@pytest.mark.parametrize(
    ("new", "deleted", "after", "told"),
    [
        (["persistent://t/n/d"], [], NAMES_ABC, "says hash"),
        (NAMES_ABC[:1], [], NAMES_ABC, "is new and was there"),
        ([], ["persistent://t/n/d"], NAMES_ABC, "was deleted and was not there"),
        ([], [], NAMES_ABC, "says nothing"),
    ],
)
def test_a_wrong_update_is_noticed(
    new: list[str], deleted: list[str], after: list[str], told: str
) -> None:
    with pytest.raises(WatchError, match=told):
        state(NAMES_ABC).after(new, deleted, topics_hash(after))


def test_a_wrong_hash_is_noticed_by_everybody_in_that_state() -> None:
    shared = state(NAMES_ABC)
    shared.after([], NAMES_ABC[:1], topics_hash(NAMES_ABC[1:]))
    with pytest.raises(WatchError):
        shared.after([], NAMES_ABC[:1], topics_hash(NAMES_ABC))


def test_a_first_answer_with_a_wrong_hash_is_noticed() -> None:
    with pytest.raises(WatchError):
        FirstStates().of(NAMES_ABC, topics_hash(NAMES_ABC[1:]))


def test_equal_first_answers_are_one_state() -> None:
    first = FirstStates()
    one, other = (first.of(NAMES_ABC, topics_hash(NAMES_ABC)) for _ in range(2))
    assert one is other
    assert first.of(NAMES_ABC[1:], topics_hash(NAMES_ABC[1:])) is not one


def test_frames_that_come_in_pieces_are_put_together() -> None:
    frame = WatchUpdate(encode_changes([b"persistent://t/n/a"], []), "00000000").frame(7)
    frames, found = Frames(), []
    for start in range(0, 2 * len(frame), 5):
        found += frames.feed((frame + frame)[start : start + 5])
    assert [one.type for one in found] == [UPDATE, UPDATE]
    assert found[0].watchTopicUpdate.watcher_id == 7


# -- figures --------------------------------------------------------------------------------------


def test_creations_and_deletions_are_judged_by_the_goal_of_their_case() -> None:
    found = {case: Found(1.0, 1.0, [4.0], [6.0], [2.0]) for case in CASES}
    judged = {
        (figure.goal, figure.met) for figure in conclude(found).figures if figure.goal is not None
    }
    assert judged == {(5.0, True), (5.0, False), (20.0, True)}

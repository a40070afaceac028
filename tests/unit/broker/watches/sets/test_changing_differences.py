"""The effect of a change of names on sets."""

import pytest

from broker.watches.names.sorted_names import SortedNames
from broker.watches.sets import changing as module
from broker.watches.sets.changing import SetDifferences, each_name
from broker.watches.sets.encoded_names import EncodedVersions
from broker.watches.sets.watched_sets import WatchedSet
from broker.watches.update_permit import UpdatePermit

T = b"persistent://t/n/"


class Watcher:
    """Stand-in watcher."""


def watched(*names: bytes) -> WatchedSet:
    made = WatchedSet("one", SortedNames.from_sorted(names), EncodedVersions())
    made.watchers[Watcher()] = None  # type: ignore[index]
    return made


def changed(noted: SetDifferences, name: bytes, *sets: WatchedSet) -> None:
    """Add a name to sets and record the change."""
    versions = [one.names for one in sets]
    for one in sets:
        one.names = one.names.with_name(name)
    noted.note(name, sets, versions, came=True)


def test_removals_precede_additions_and_only_persistent_user_topics_are_watched() -> None:
    hidden = [T + b"__change_events", b"non-persistent://t/n/a"]
    found = list(each_name([T + b"b", *hidden], [T + b"a", *hidden]))
    assert found == [(T + b"a", False), (T + b"b", True)]


def test_an_unchanged_set_has_no_update() -> None:
    noted, one = SetDifferences(), watched(b"a")
    changed(noted, b"a", one)
    assert noted.updates(UpdatePermit()) == []


def test_several_names_of_a_change_are_a_single_update_per_set() -> None:
    noted, one, other = SetDifferences(), watched(b"a"), watched(b"x")
    before = one.names
    changed(noted, b"b", one, other)
    changed(noted, b"c", one)
    updates = dict(noted.updates(UpdatePermit()))
    assert (updates[one].before, updates[one].after) == (before, one.names)
    assert len(updates) == 2
    frame = updates[one].command.frame(1)
    assert b"\x12\x01b\x12\x01c" in frame
    assert one.names.hash.encode() in frame
    assert b"\x12\x01c" not in updates[other].command.frame(1)


def test_a_set_without_watchers_has_no_update() -> None:
    noted, one = SetDifferences(), watched(b"a")
    one.watchers.clear()
    changed(noted, b"b", one)
    assert noted.updates(UpdatePermit()) == []


def test_a_name_shared_by_many_sets_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[object] = []
    original = module.encode_changes

    def encode_changes(*names: list[bytes]) -> bytes:
        encoded.append(names)
        return original(*names)

    monkeypatch.setattr(module, "encode_changes", encode_changes)
    noted, sets = SetDifferences(), [watched(str(number).encode()) for number in range(10)]
    changed(noted, b"x", *sets)
    updates = noted.updates(UpdatePermit())
    assert (len(updates), len(encoded)) == (10, 1)


def test_the_permit_of_a_change_covers_the_updates_of_all_sets() -> None:
    noted, sets = SetDifferences(), [watched(str(number).encode()) for number in range(10)]
    changed(noted, b"x", *sets)
    permit = UpdatePermit()
    updates = noted.updates(permit)
    assert permit.size_bytes == sum(update.command.body_bytes for _, update in updates) == 130

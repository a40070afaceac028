"""Recorded watch updates: in any order, each with the resulting set's hash.

The store decides the order of a change's updates: a real broker's followed its metadata store's
events. So a change's updates are compared as a set, and each hash is recomputed from the topics
reported so far.
"""

from collections.abc import Iterable, Sequence

import google_crc32c

from proto import PulsarApi_pb2 as pb
from tests.support.golden.exchange import Answer, Expect, Step
from tests.support.golden.masks import Difference

EMPTY_HASH = "00000000"


def updates_of_one_change(steps: Sequence[Step], start: int) -> list[Expect]:
    """Return consecutive updates from a step on; empty if fewer than two."""
    found: list[Expect] = []
    for step in steps[start:]:
        if not isinstance(step, Expect) or not _is_update(step.answer):
            break
        found.append(step)
    return found if len(found) > 1 else []


def without_hash(answer: Answer) -> Answer:
    """Return an update without its hash; other answers unchanged."""
    if not isinstance(answer, pb.BaseCommand) or not _is_update(answer):
        return answer
    bare = pb.BaseCommand()
    bare.CopyFrom(answer)
    bare.watchTopicUpdate.topics_hash = ""
    return bare


def topics_hash(names: Iterable[str]) -> str:
    """Pulsar's hash of topics: CRC32C of the names in Java's order, joined by commas."""
    ordered = sorted(names, key=lambda name: name.encode("utf-16-be"))
    if not ordered:
        return EMPTY_HASH
    # The bytes of the checksum from the lowest to the highest.
    return google_crc32c.value(",".join(ordered).encode()).to_bytes(4, "little").hex()


class WatchedTopics:
    """Topics reported so far to each watcher of a case."""

    def __init__(self) -> None:
        self._sets: dict[tuple[int, int], set[str]] = {}

    def take(self, connection: int, answer: Answer) -> None:
        """Apply a watcher's update to its set; ignore other answers."""
        if not isinstance(answer, pb.BaseCommand):
            return
        if answer.type == pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS:
            success = answer.watchTopicListSuccess
            self._sets[connection, success.watcher_id] = set(success.topic)
        elif _is_update(answer):
            update = answer.watchTopicUpdate
            topics = self._sets.setdefault((connection, update.watcher_id), set())
            topics.update(update.new_topics)
            topics.difference_update(update.deleted_topics)

    def differences(self, step: int, connection: int, answer: Answer) -> list[Difference]:
        """Apply an update and compare its hash with the resulting set's."""
        self.take(connection, answer)
        if not isinstance(answer, pb.BaseCommand) or not _is_update(answer):
            return []
        update = answer.watchTopicUpdate
        expected = topics_hash(self._sets[connection, update.watcher_id])
        if update.topics_hash == expected:
            return []
        return [Difference(step, "watchTopicUpdate.topics_hash", expected, update.topics_hash)]


def _is_update(answer: Answer) -> bool:
    update = pb.BaseCommand.WATCH_TOPIC_UPDATE
    return isinstance(answer, pb.BaseCommand) and answer.type == update

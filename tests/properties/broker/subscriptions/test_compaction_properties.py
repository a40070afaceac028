"""Random topics, compacted at random moments: the result equals a dictionary."""

import asyncio
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.messages.compaction.batches import messages_of
from broker.messages.compaction.topic_compaction import CompactionStatus
from broker.messages.metadata import parse_metadata, payload_of
from broker.messages.position import EARLIEST, Position
from broker.messages.stores.memory import MemoryMessageStore
from tests.support.subscriptions.messages import message, single
from tests.support.subscriptions.stored_topic import StoredTopic

KEYS = st.sampled_from([None, "", "a", "b", "c"])
VALUES = st.sampled_from([b"", b"x", b"yy"])
ONE = st.tuples(KEYS, VALUES)
COMPACT, ROLL, UNLOAD = "compact", "roll", "unload"
STEPS = st.lists(
    st.one_of(ONE, st.lists(ONE, min_size=1, max_size=4), st.sampled_from([COMPACT, ROLL, UNLOAD])),
    max_size=25,
)


class Place(NamedTuple):
    """Where a message stands."""

    position: Position
    index: int
    value: bytes


def as_single(key: str | None, value: bytes) -> bytes:
    return single(value) if key is None else single(value, partition_key=key)


def in_entry(data: bytes, position: Position) -> list[Place]:
    """Return an entry's messages that are not left out."""
    metadata, payload = parse_metadata(data), payload_of(data)
    if not metadata.HasField("num_messages_in_batch"):
        return [Place(position, 0, payload)]
    return [
        Place(position, index, one.framed[len(one.framed) - one.metadata.payload_size :])
        for index, one in enumerate(messages_of(payload, metadata.num_messages_in_batch))
        if not one.metadata.compacted_out
    ]


class Play:
    """A topic beside a dictionary of the last message of each key."""

    def __init__(self, topic: StoredTopic) -> None:
        self.topic = topic
        self.latest: dict[str, Place] = {}

    async def do(self, step: object) -> None:
        if step == COMPACT:
            await self.topic.compact()
            assert self.topic.compaction.status is CompactionStatus.SUCCESS
        elif step == ROLL:
            self.topic.ledger.roll()
        elif step == UNLOAD:
            await self.topic.unload()
            self.topic = await StoredTopic.loaded(self.topic.store)
        elif isinstance(step, list):
            batch = b"".join(as_single(*one) for one in step)
            self.publish(message(batch, num_messages_in_batch=len(step)), step)
        elif isinstance(step, tuple):
            self.publish(message(step[1], key=step[0]), [step])

    def publish(self, data: bytes, messages: list[tuple[str | None, bytes]]) -> None:
        position = self.topic.append(data)
        for index, (key, value) in enumerate(messages):
            if key is not None and value:
                self.latest[key] = Place(position, index, value)
            elif key is not None:
                self.latest.pop(key, None)

    async def left(self) -> list[Place]:
        """Return all messages left by compaction."""
        compacted = self.topic.compaction.compacted
        assert compacted is not None
        found: list[Place] = []
        at = EARLIEST
        while read := await compacted.fetch(at, 2, 1_000):
            for entry in read:
                found += in_entry(entry.data, entry.position)
            at = Position(read[-1].ledger_id, read[-1].entry_id + 1)
        return found


async def play(steps: list[object]) -> tuple[list[Place], list[Place]]:
    """Play the steps and compact; return the actual and the expected messages."""
    topic = await StoredTopic.loaded(MemoryMessageStore(max_entries_per_ledger=3))
    playing = Play(topic)
    for step in [*steps, COMPACT]:
        await playing.do(step)
    return await playing.left(), sorted(playing.latest.values())


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_compaction_retains_exactly_the_last_value_of_each_key(steps: list[object]) -> None:
    left, expected = asyncio.run(play(steps))
    assert left == expected

"""A topic's last message, independent of the producer's metadata."""

import pytest

from broker.commands.consuming import last_message
from broker.messages.stores.memory import MemoryMessageStore
from tests.support.subscriptions.stored_topic import StoredTopic


@pytest.mark.parametrize(
    ("count", "index"),
    [(None, -1), (3, 2), (0, -1), (-1, -1), (-(2**31), -1), (2**31 - 1, 2**31 - 2)],
)
async def test_a_batch_without_messages_has_no_last_batch_index(
    count: int | None, index: int
) -> None:
    topic = await StoredTopic.loaded(MemoryMessageStore())
    said = {} if count is None else {"num_messages_in_batch": count}
    position = topic.publish(b"m", **said)
    assert last_message(await topic.ledger.entry(position)) == (position, index)

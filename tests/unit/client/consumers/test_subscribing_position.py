"""A position names the preceding message, and progress continues from the taken messages."""

from types import SimpleNamespace
from typing import Any

import pytest

from client.consumers.subscribing import Position, Progress
from client.messages.message_id import MessageId


def head(entry_id: int, batch_size: int = 0) -> Any:
    def message_id(batch_index: int = -1) -> MessageId:
        return MessageId(-1, 1, entry_id, batch_index)

    return SimpleNamespace(
        ledger_id=1, entry_id=entry_id, batch_size=batch_size, message_id=message_id
    )


@pytest.mark.parametrize(
    ("index", "inclusive", "entry", "skips", "skipped"),
    [
        (-1, False, head(5), True, 1),
        (-1, True, head(5), False, 0),
        (-1, False, head(6), False, 0),
        (1, False, head(5, 3), False, 2),
        (1, True, head(5, 3), False, 1),
        (2, False, head(5, 3), True, 3),
        (2, True, head(5, 3), False, 2),
    ],
)
def test_messages_before_the_start_position_are_skipped(
    index, inclusive, entry, skips, skipped
) -> None:
    position = Position(MessageId(-1, 1, 5, index), inclusive)
    assert position.skips_entry(entry) is skips
    assert position.skipped_indexes(entry) == skipped


@pytest.mark.parametrize("end", [MessageId.earliest, MessageId.latest])
def test_the_earliest_and_latest_positions_skip_no_message(end: MessageId) -> None:
    position = Position(end, inclusive=False)
    assert (position.in_topic, position.skips_entry(head(5))) == (False, False)


def test_a_chunked_message_is_positioned_at_its_first_chunk_or_behind_its_last_chunk() -> None:
    message_id = MessageId(-1, 1, 5, first_chunk=MessageId(-1, 1, 3))
    assert Position(message_id, inclusive=True).sent.entry == (1, 3)
    assert Position(message_id, inclusive=False).sent.entry == (1, 5)
    assert Position(message_id, inclusive=False).is_last_chunk((1, 5))
    assert not Position(message_id, inclusive=True).is_last_chunk((1, 5))


def test_progress_resumes_behind_the_last_taken_message() -> None:
    progress = Progress(Position(MessageId.earliest, inclusive=True))
    assert progress.resume() == MessageId.earliest
    progress.last = head(5, 3), 1
    assert progress.resume() == MessageId(-1, 1, 5, 1)
    assert progress.start == Position(MessageId(-1, 1, 5, 1), inclusive=False)


def test_progress_without_a_start_resumes_at_the_latest_message() -> None:
    assert Progress().resume() == MessageId.latest
    assert Progress().taken_id == MessageId.earliest

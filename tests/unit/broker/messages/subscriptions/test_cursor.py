"""A cursor: mark-delete, holes, partial batches, and every way to move."""

from collections.abc import Iterable

from broker.messages.position import EARLIEST, LATEST, Position
from broker.messages.stores.managed_ledger import CursorState, ManagedLedger
from broker.messages.subscriptions.cursor import ManagedCursor
from tests.support.messages.consumers import kept_topic


async def cursor_of(
    entries: int, ledger_entries: int = 50, acknowledged: Iterable[int] = ()
) -> tuple[ManagedCursor, ManagedLedger]:
    """Return the cursor of some entries, after acknowledgements in the given order."""
    topic = await kept_topic(ledger_entries=ledger_entries)
    cursor = ManagedCursor(topic.ledger, "s", topic.ledger.preceding(EARLIEST))
    topic.publish(entries)
    for number in acknowledged:
        cursor.acknowledge(at(topic.ledger, number))
    return cursor, topic.ledger


def at(ledger: ManagedLedger, number: int) -> Position:
    """Return the position of the ``number``-th entry, from 0 on."""
    return ledger.at(ledger.preceding(EARLIEST), number + 1)


async def test_the_mark_delete_position_moves_over_closed_holes() -> None:
    cursor, ledger = await cursor_of(5, acknowledged=(1, 2))
    assert (cursor.backlog, cursor.mark_delete.entry_id) == (3, -1)
    cursor.acknowledge(at(ledger, 0))
    assert (cursor.backlog, cursor.mark_delete) == (2, at(ledger, 2))
    assert cursor.acknowledged.count == 0


async def test_the_mark_delete_position_moves_across_ledgers() -> None:
    cursor, ledger = await cursor_of(7, ledger_entries=2, acknowledged=(1, 2, 3, 5, 0))
    assert (cursor.mark_delete, cursor.backlog) == (at(ledger, 3), 2)


async def test_the_cursor_holds_only_existing_unacknowledged_entries() -> None:
    cursor, ledger = await cursor_of(3, acknowledged=[0])
    last = ledger.last_confirmed
    held = [
        cursor.holds(one)
        for one in (at(ledger, 0), at(ledger, 1), Position(last.ledger_id, 3), Position(99, 0))
    ]
    assert held == [False, True, False, False]


async def test_a_cumulative_acknowledgement_moves_only_forward_to_existing_entries() -> None:
    cursor, ledger = await cursor_of(5, acknowledged=[3])
    beyond = cursor.acknowledge_through(Position(ledger.last_confirmed.ledger_id, 9))
    moved = cursor.acknowledge_through(at(ledger, 2))
    behind = cursor.acknowledge_through(at(ledger, 1))
    assert (beyond, moved, behind) == (False, True, False)
    assert (cursor.mark_delete, cursor.backlog) == (at(ledger, 3), 1)


async def test_acknowledging_before_a_ledger_covers_all_previous_entries() -> None:
    cursor, ledger = await cursor_of(4, ledger_entries=2)
    second = Position(at(ledger, 2).ledger_id, -1)
    beyond = cursor.acknowledge_through(Position(second.ledger_id + 1, -1))
    moved = cursor.acknowledge_through(second)
    again = cursor.acknowledge_through(second)
    assert (beyond, moved, again) == (False, True, False)
    assert (cursor.mark_delete, cursor.first_left, cursor.backlog) == (second, at(ledger, 2), 2)


async def test_a_batch_is_acknowledged_when_no_message_remains() -> None:
    cursor, ledger = await cursor_of(2)
    first = at(ledger, 0)
    some = cursor.acknowledge_part(first, 4, [0b1100])
    words = cursor.batches.words(first)
    rest = cursor.acknowledge_part(first, 4, [0b0011])
    assert (some, words, rest) == ((2, False), (0b1100,), (2, True))
    assert (cursor.mark_delete, cursor.batches.words(first)) == (first, None)


async def test_a_reset_forgets_earlier_acknowledgements() -> None:
    cursor, ledger = await cursor_of(5, acknowledged=(0, 1, 3))
    cursor.reset(at(ledger, 1))
    assert (cursor.backlog, cursor.read_position, cursor.acknowledged.count) == (
        4,
        at(ledger, 1),
        0,
    )


async def test_a_reset_beyond_the_last_entry_moves_to_the_end() -> None:
    cursor, ledger = await cursor_of(5)
    cursor.reset(LATEST)
    assert (cursor.backlog, cursor.mark_delete, cursor.at_end) == (0, ledger.last_confirmed, True)


async def test_a_skip_counts_only_unacknowledged_entries() -> None:
    cursor, ledger = await cursor_of(8, ledger_entries=3, acknowledged=(1, 2, 4))
    cursor.skip(3)
    # 0, 3 and 5 are skipped
    assert (cursor.mark_delete, cursor.backlog) == (at(ledger, 5), 2)


async def test_an_entry_behind_many_acknowledged_entries_is_found_in_few_steps(monkeypatch) -> None:
    cursor, ledger = await cursor_of(10_000, ledger_entries=3_000, acknowledged=range(1, 9_999))
    asked: list[int] = []
    place = ledger.at

    def counted(after: Position, count: int) -> Position:
        asked.append(count)
        return place(after, count)

    monkeypatch.setattr(ledger, "at", counted)
    found = [cursor.nth_left(number) for number in (1, 2, 3)]
    cursor.skip(2)
    assert found == [place(ledger.preceding(EARLIEST), one) for one in (1, 10_000)] + [None]
    assert cursor.backlog == 0
    assert len(asked) <= 3 * 15


async def test_whole_reads_of_acknowledged_entries_are_skipped() -> None:
    cursor, ledger = await cursor_of(10, ledger_entries=6, acknowledged=(1, 2, 3, 4, 5, 6))
    cursor.read_position = at(ledger, 1)
    # Equivalent to reads of two entries each, which end with the ledger
    places = []
    for entries in (6, 2, 2):
        cursor.pass_acknowledged(entries)
        places.append(cursor.read_position)
    assert places == [at(ledger, 1), at(ledger, 5), at(ledger, 5)]


async def test_a_skip_beyond_the_backlog_moves_to_the_end() -> None:
    cursor, ledger = await cursor_of(3)
    cursor.skip(0)
    before = cursor.backlog
    cursor.skip(99)
    assert (before, cursor.backlog, cursor.mark_delete) == (3, 0, ledger.last_confirmed)


async def test_a_saved_cursor_is_recovered_unchanged() -> None:
    cursor, ledger = await cursor_of(6, acknowledged=(0, 2, 4))
    cursor.properties["k"] = "v"
    cursor.acknowledge_part(at(ledger, 1), 3, [0b110])
    cursor.save()
    recovered = ManagedCursor.recovered(ledger, "s", ledger.cursors["s"])
    assert recovered.state == cursor.state
    assert (recovered.backlog, recovered.read_position) == (3, at(ledger, 1))


async def test_an_unchanged_cursor_is_not_saved_again() -> None:
    cursor, ledger = await cursor_of(1)
    cursor.save()
    ledger.delete_cursor("s")
    cursor.save()
    assert "s" not in ledger.cursors


async def test_deleted_entries_are_not_recovered_as_holes() -> None:
    # Nine entries were acknowledged, six of them deleted since
    _, ledger = await cursor_of(3)
    first = at(ledger, 0)
    holes = {first.ledger_id: b"\xfe\x01", first.ledger_id + 50: b"\xff"}
    state = CursorState(ledger.preceding(first), holes, {}, {})
    cursor = ManagedCursor.recovered(ledger, "s", state)
    assert (cursor.backlog, cursor.state.acknowledged) == (1, {first.ledger_id: b"\x06"})

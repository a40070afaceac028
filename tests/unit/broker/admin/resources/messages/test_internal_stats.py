from hypothesis import given
from hypothesis import strategies as st

from broker.admin.resources.messages.internal_stats import analyzed
from broker.messages.metadata import MessageDigest
from broker.messages.position import Position
from broker.messages.subscriptions.cursor import ManagedCursor
from broker.messaging import message_store_for
from limiter.clock import LoopClock
from tests.support.processes.cluster import broker_config


@given(
    entries=st.integers(0, 30),
    acknowledged=st.sets(st.integers(0, 29)),
    rolls=st.sets(st.integers(0, 29)),
)
async def test_the_nth_unacknowledged_entry_is_found_whatever_was_acknowledged_before(
    entries: int, acknowledged: set[int], rolls: set[int]
) -> None:
    store = message_store_for(broker_config({}), LoopClock())
    await store.open()
    ledger = await store.open_ledger("persistent://a/b/c")
    positions = []
    for number in range(entries):
        positions.append(ledger.append(b"x", MessageDigest(2, number, 0)))
        if number in rolls:
            ledger.roll()
    first = ledger.ledgers[0].ledger_id
    cursor = ManagedCursor(ledger, "s", Position(first, -1))
    left = []
    for number, position in enumerate(positions):
        if number in acknowledged:
            cursor.acknowledge(position)
        else:
            left.append(position)
    found = [cursor.nth_left(place) for place in range(1, len(left) + 3)]
    body = await analyzed(cursor, ledger, cursor.first_left)
    assert found == [*left, None, None]
    assert (body["entries"], body["messages"]) == (len(left), 2 * len(left))
    assert body.get("firstMessageId") == (str(left[0]) if left else None)
    assert body.get("lastMessageId") == (str(left[-1]) if left else None)
    await store.close()

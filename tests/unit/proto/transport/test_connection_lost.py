"""Holders of a connection are notified of the loss."""

from tests.unit.proto.transport.test_connection import connected, enqueue


async def test_they_are_told_in_order_in_the_turn_of_the_loss_and_of_which_connection() -> None:
    peer, told = connected(), list[object]()
    peer.when_lost(told.append, lambda cnx: told.append(cnx.ends))
    peer.when_lost(lambda _: told.append("last"))
    peer.memory.breaks()
    # The connection knew first
    assert told == [peer, [None], "last"]


async def test_entries_have_given_back_what_they_held_before_anybody_is_told() -> None:
    peer, told = connected(), list[str]()
    enqueue(peer, 100_000, told, "entry")
    peer.when_lost(lambda _: told.append("told"))
    peer.memory.breaks()
    assert told == ["entry", "told"]


async def test_one_that_raises_does_not_keep_the_others_from_being_told(caplog) -> None:
    peer, told = connected(), list[str]()

    def fail(_: object) -> None:
        raise ZeroDivisionError

    peer.lost = fail  # type: ignore[method-assign]
    peer.when_lost(fail, lambda _: told.append("second"))
    peer.memory.breaks()
    await peer.wait_closed()
    assert told == ["second"]
    assert len(caplog.records) == 2

"""Holders of a connection are notified of the loss."""

from tests.unit.proto.transport.test_connection import connected, enqueue


async def test_loss_listeners_are_called_in_order_with_the_lost_connection() -> None:
    peer, told = connected(), list[object]()
    peer.when_lost(told.append, lambda cnx: told.append(cnx.ends))
    peer.when_lost(lambda _: told.append("last"))
    peer.memory.breaks()
    # The connection knew first
    assert told == [peer, [None], "last"]


async def test_entries_are_released_before_loss_listeners_are_called() -> None:
    peer, told = connected(), list[str]()
    enqueue(peer, 100_000, told, "entry")
    peer.when_lost(lambda _: told.append("told"))
    peer.memory.breaks()
    assert told == ["entry", "told"]


async def test_a_raising_loss_listener_does_not_prevent_later_listeners(caplog) -> None:
    peer, told = connected(), list[str]()

    def fail(_: object) -> None:
        raise ZeroDivisionError

    peer.lost = fail  # type: ignore[method-assign]
    peer.when_lost(fail, lambda _: told.append("second"))
    peer.memory.breaks()
    await peer.wait_closed()
    assert told == ["second"]
    assert len(caplog.records) == 2

"""Those who hold something for a connection are told when it is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.proto.transport.test_connection import connected, enqueue

if TYPE_CHECKING:
    import pytest


async def test_they_are_told_in_order_in_the_turn_of_the_loss_and_of_which_connection() -> None:
    # Given
    peer, told = connected(), list[object]()
    peer.when_lost(told.append, lambda cnx: told.append(cnx.ends))
    peer.when_lost(lambda _: told.append("last"))
    # When
    peer.memory.breaks()
    # Then: the connection itself knew first
    assert told == [peer, [None], "last"]


async def test_entries_have_given_back_what_they_held_before_anybody_is_told() -> None:
    # Given
    peer, told = connected(), list[str]()
    enqueue(peer, 100_000, told, "entry")
    peer.when_lost(lambda _: told.append("told"))
    # When
    peer.memory.breaks()
    # Then
    assert told == ["entry", "told"]


async def test_one_that_raises_does_not_keep_the_others_from_being_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Given
    peer, told = connected(), list[str]()

    def fail(_: object) -> None:
        raise ZeroDivisionError

    peer.lost = fail  # type: ignore[method-assign]
    peer.when_lost(fail, lambda _: told.append("second"))
    # When
    peer.memory.breaks()
    await peer.wait_closed()
    # Then
    assert told == ["second"]
    assert len(caplog.records) == 2

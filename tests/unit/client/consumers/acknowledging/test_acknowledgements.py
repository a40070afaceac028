"""Acknowledgements are gathered, and sent in few commands, or with receipts."""

import asyncio
from typing import Any

import pytest

import proto.PulsarApi_pb2 as pb
from client.consumers.acknowledging import acknowledgements
from client.consumers.acknowledging.acknowledgements import Acknowledgements
from client.consumers.options import ConsumerOptions
from client.exceptions import AlreadyClosed, NotConnected, PulsarException
from client.messages.message_id import MessageId
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started


class Link:
    """The link to the broker, open or closed; answers are released by tests."""

    consumer_id = 3
    persistent = True

    def __init__(self) -> None:
        self.cnx: object | None = self
        self.sent: list[pb.CommandAck] = []
        self.error: PulsarException | None = None
        self.hold = asyncio.Event()

    def acknowledge(self, ack: pb.CommandAck) -> None:
        self.sent.append(ack)

    async def request_acknowledgement(self, ack: pb.CommandAck) -> None:
        self.sent.append(ack)
        await self.hold.wait()
        if self.error is not None:
            raise self.error

    def ids(self) -> list[tuple[int, list[int]]]:
        """Return the entries and bits of each sent id."""
        return [(one.entryId, list(one.ack_set)) for ack in self.sent for one in ack.message_id]


class Acks:
    """Acknowledgements with link and clock."""

    def __init__(self, **options: Any) -> None:
        self.link, self.clock = Link(), ManualClock()
        link: Any = self.link
        self.acks = Acknowledgements(self.clock, ConsumerOptions(**options), link)


def of(entry: int, index: int = -1, size: int = 0) -> MessageId:
    return MessageId(-1, 1, entry, index, batch_size=size)


async def test_acknowledgements_are_sent_at_the_group_size_or_the_group_time() -> None:
    case = Acks(ack_group_size=3)
    case.acks.individual(of(1))
    case.acks.individual(of(1))
    before = case.link.ids()
    case.clock.advance(0.1)
    timed = case.link.ids()
    for entry in (2, 3, 4):
        case.acks.individual(of(entry))
    assert (before, timed) == ([], [(1, [])])
    assert len(case.link.sent) == 2
    assert case.acks.pending == 0


async def test_an_ack_command_has_at_most_the_limits_of_ids_and_bit_set_words(monkeypatch) -> None:
    monkeypatch.setattr(acknowledgements, "MOST_IDS", 2)
    monkeypatch.setattr(acknowledgements, "MOST_WORDS", 3)
    case = Acks(batch_index_ack_enabled=True, ack_group_size=100)
    for entry in range(5):
        case.acks.individual(of(entry))
    for entry in (10, 11):
        case.acks.individual(of(entry, 0, 128))
    case.acks.flush()
    assert [len(ack.message_id) for ack in case.link.sent] == [2, 2, 2, 1]
    assert case.link.ids()[-1] == (11, [-2, -1])


async def test_acknowledgements_wait_for_a_connection_and_the_oldest_are_dropped_at_the_limit(
    monkeypatch,
) -> None:
    monkeypatch.setattr(acknowledgements, "MOST_PENDING", 2)
    case = Acks(ack_group_time_ms=0)
    case.link.cnx = None
    for entry in range(4):
        case.acks.individual(of(entry))
    waiting = case.acks.is_pending((1, 3)), case.acks.is_pending((1, 1))
    case.link.cnx = case
    case.acks.flush()
    assert waiting == (True, False)
    assert case.link.ids() == [(2, []), (3, [])]


@pytest.mark.parametrize(
    ("by_index", "ids", "expected", "whole"),
    [
        (False, [of(5)], [(5, [])], 5),
        (False, [of(5, 2, 3)], [(5, [])], 5),
        (False, [of(5, 1, 3)], [(4, [])], 4),
        (True, [of(5, 1, 3)], [(5, [0b100])], 4),
        (True, [of(5, 1, 3), of(4)], [(5, [0b100])], 4),
        (True, [of(4), of(5, 0, 3), of(5, 1, 3)], [(5, [0b100])], 4),
        (False, [of(0, 1, 3)], [(2**64 - 1, [])], -1),
    ],
)
async def test_only_the_furthest_cumulative_acknowledgement_is_sent(
    by_index: bool, ids: list[MessageId], expected: list[tuple[int, list[int]]], whole: int
) -> None:
    case = Acks(batch_index_ack_enabled=by_index)
    reached = [case.acks.cumulative(one) for one in ids]
    case.acks.flush()
    assert case.link.ids() == expected
    assert max(reached) == (1, whole)


async def test_acknowledgements_of_a_group_share_a_single_receipt() -> None:
    case = Acks(ack_receipt_enabled=True)
    case.acks.individual(of(1))
    first = case.acks.receipt()
    case.acks.individual(of(2))
    assert first is not None
    assert case.acks.receipt() is first
    assert case.acks.receipt() is None
    sending = await started(case.acks.sent())
    case.link.hold.set()
    await sending
    assert first.done()


@pytest.mark.parametrize("how", ["the link", "dropped", "before it answered", "ended"])
async def test_a_receipt_that_cannot_arrive_fails_with_an_error_of_its_cause(how: str) -> None:
    case = Acks(ack_receipt_enabled=True)
    case.acks.individual(of(1))
    receipt = case.acks.receipt()
    assert receipt is not None
    if how == "dropped":
        case.acks.drop(NotConnected("dropped"))
    else:
        case.link.error = NotConnected("the link")
        case.acks.flush()
        await settle()
        if how == "ended":
            case.acks.end()
        if how == "before it answered":
            case.acks.closed_by_broker()
        case.link.hold.set()
        await settle()
    kind, words = (AlreadyClosed, "was closed") if how == "ended" else (NotConnected, how)
    with pytest.raises(kind, match=words):
        await receipt


async def test_receipts_fail_when_acknowledgements_beyond_the_limit_are_dropped(
    monkeypatch,
) -> None:
    monkeypatch.setattr(acknowledgements, "MOST_PENDING", 2)
    case = Acks(ack_receipt_enabled=True, ack_group_time_ms=0)
    case.link.cnx = None
    # When three wait, and a fourth
    receipts = []
    for entry in range(4):
        case.acks.individual(of(entry))
        receipts.append(case.acks.receipt())
    errors = [receipt.exception() for receipt in receipts if receipt is not None]
    assert [type(error) for error in errors] == [NotConnected] * 4
    # And the remaining acknowledgements are sent
    case.link.cnx = case.link
    case.link.hold.set()
    await case.acks.sent()
    assert case.link.ids() == [(2, []), (3, [])]

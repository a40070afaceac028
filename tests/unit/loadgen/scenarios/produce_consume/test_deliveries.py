"""A message that is lost, comes twice or out of its order is found."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loadgen.clients.records import Outcome, RequestRecord
from loadgen.scenarios.produce_consume.deliveries import Deliveries

PRODUCER = 4


def published(messages: int, *, without_receipt: tuple[int, ...] = ()) -> list[RequestRecord]:
    """Messages 1 to ``messages``, due a second apart and sent a tenth late."""
    return [
        RequestRecord(
            PRODUCER,
            "load/ns",
            float(number),
            number + 0.1,
            None,
            number + 0.2,
            Outcome.TIMEOUT if number in without_receipt else Outcome.ANSWERED,
        )
        for number in range(1, messages + 1)
    ]


def deliveries(*numbers: int, orders: int = 1) -> Deliveries:
    """What a subscription has got, in this order, each two seconds after it was due."""
    got = Deliveries("subscription 0 of producer 4", PRODUCER, orders)
    for number in numbers:
        got.take((PRODUCER, number), number + 2.0)
    return got


def judged(got: Deliveries, sent: list[RequestRecord]) -> list[tuple[str | None, str]]:
    return [(each.outcome, each.reason) for each in got.records(sent, PRODUCER, 9.0)]


def test_a_message_takes_from_when_it_was_due_to_its_arrival() -> None:
    got, sent = deliveries(1, 2), published(2)
    assert got.complete(sent)
    (first, _) = got.records(sent, PRODUCER, 9.0)
    assert (first.operation, first.group, first.outcome) == ("deliver", "consumers", "answered")
    times = first.intended_start_seconds, first.started_seconds, first.finished_seconds
    assert times == (1.0, 1.1, 3.0)


def test_a_lost_message_is_wrong() -> None:
    got, sent = deliveries(1, 3), published(3)
    assert not got.complete(sent)
    assert judged(got, sent)[1] == (
        Outcome.WRONG,
        "subscription 0 of producer 4 never got message 2, which has a receipt",
    )
    assert got.detail(sent)["lost"] == 1


def test_a_message_without_receipt_may_come_or_not() -> None:
    sent = published(2, without_receipt=(1, 2))
    got = deliveries(2)
    assert got.complete(sent)
    assert judged(got, sent) == [(Outcome.ANSWERED, "")]


def test_a_doubled_message_is_wrong() -> None:
    got, sent = deliveries(1, 2, 2), published(2)
    assert judged(got, sent)[-1] == (
        Outcome.WRONG,
        "subscription 0 of producer 4 got message 2 twice",
    )
    assert got.detail(sent)["doubled"] == 1


def test_a_message_that_the_broker_delivers_again_is_counted() -> None:
    got = deliveries(1)
    got.take((PRODUCER, 1), 4.0, redelivered=True)
    assert (got.redelivered, got.problems) == (1, [])


def test_a_message_behind_a_later_one_is_wrong() -> None:
    got = deliveries(2, 1)
    assert got.problems == ["subscription 0 of producer 4 got message 1 behind message 2"]


def test_a_message_of_somebody_else_is_wrong() -> None:
    got = deliveries()
    got.take((PRODUCER + 1, 1), 1.0)
    got.take(None, 1.0)
    assert got.corrupt == len(got.problems) == 2


def test_a_subscription_whose_consumer_was_lost_waits_for_nothing() -> None:
    got, sent = deliveries(1), published(2)
    got.lost_consumer = "closed by the server"
    assert got.complete(sent)
    assert judged(got, sent)[1] == (Outcome.DISCONNECTED, "closed by the server")


def test_an_interrupted_run_leaves_out_what_had_not_come() -> None:
    got, sent = deliveries(1), published(2)
    assert len(list(got.records(sent, PRODUCER, 9.0, interrupted=True))) == 1


@given(st.permutations(range(1, 8)), st.sampled_from([0, 1, 3]))
def test_order_counts_within_each_key_alone(numbers: list[int], orders: int) -> None:
    got = deliveries(*numbers, orders=orders)
    parts = [[n for n in numbers if n % orders == part] for part in range(orders)]
    assert (got.out_of_order == 0) is all(part == sorted(part) for part in parts)
    assert got.doubled == 0
    assert got.complete(published(7))

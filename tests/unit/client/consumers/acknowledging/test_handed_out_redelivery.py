"""Unacknowledged and refused messages are redelivered when due."""

from typing import Any

from client.consumers.acknowledging.handed_out import Redelivery
from client.consumers.options import ConsumerOptions, NegativeAckBackoff
from client.messages.message_id import Place
from tests.support.clocks.manual_clock import ManualClock


class Times:
    """A redelivery, and the redelivered ids."""

    def __init__(self, **options: Any) -> None:
        self.clock = ManualClock()
        self.again: list[tuple[list[Place], bool]] = []
        self.redelivery = Redelivery(self.clock, ConsumerOptions(**options), self.redeliver)

    def redeliver(self, entries: list[Place], *, timed_out: bool) -> None:
        self.again.append((entries, timed_out))


def test_messages_are_watched_only_with_an_ack_timeout() -> None:
    assert not Times().redelivery.watches
    assert Times(unacked_messages_timeout_ms=10_000).redelivery.watches


def test_unacknowledged_messages_are_redelivered_together_after_the_timeout() -> None:
    times = Times(unacked_messages_timeout_ms=10_000)
    for entry in range(3):
        times.redelivery.taken((1, entry))
    times.redelivery.forget((1, 1))
    times.clock.advance(11)
    assert times.again == [([(1, 0), (1, 2)], True)]
    assert times.redelivery.unacknowledged == 0


def test_a_refused_message_is_no_longer_watched_for_the_ack_timeout() -> None:
    times = Times(unacked_messages_timeout_ms=10_000, negative_ack_redelivery_delay_ms=20_000)
    times.redelivery.taken((1, 0))
    times.redelivery.refuse((1, 0), 0)
    times.clock.advance(11)
    early = list(times.again)
    times.clock.advance(11)
    assert (early, times.again) == ([], [([(1, 0)], False)])


def test_a_backoff_makes_the_delay_of_each_redelivery_longer() -> None:
    times = Times(negative_ack_backoff=NegativeAckBackoff(100, 400))
    times.redelivery.refuse((1, 0), 0)
    times.redelivery.refuse((1, 1), 1)
    times.redelivery.refuse((1, 9), 9)
    counts = []
    for _ in range(3):
        times.clock.advance(0.15)
        counts.append(times.redelivery.refused)
    assert counts == [2, 1, 0]


def test_messages_up_to_a_position_or_all_messages_may_be_forgotten() -> None:
    times = Times(unacked_messages_timeout_ms=10_000)
    for entry in range(4):
        times.redelivery.taken((1, entry))
        times.redelivery.refuse((2, entry), 0)
    times.redelivery.forget_up_to((1, 2))
    left = times.redelivery.unacknowledged, times.redelivery.refused
    times.redelivery.clear()
    times.clock.advance(100)
    assert left == (1, 4)
    assert times.again == []

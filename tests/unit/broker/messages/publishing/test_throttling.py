"""Publish limits pause and resume connections."""

from broker.messages.publishing.throttling import (
    ConnectionPublishes,
    PublishBuffer,
    PublishLimits,
    PublishRate,
)
from broker.policies.effective import NO_RATE, Rate
from limiter.flow.read_gate import ReadGate
from tests.support.clocks.manual_clock import ManualClock
from tests.support.messages.producing import limits


def connection(of: PublishLimits) -> tuple[ConnectionPublishes, ReadGate]:
    gate = ReadGate(lambda: None, lambda: None)
    return ConnectionPublishes(gate, of), gate


def test_a_connection_with_too_many_messages_in_flight_is_paused_until_half_are_stored() -> None:
    publishes, gate = connection(limits(ManualClock(), max_pending=4))
    for _ in range(3):
        publishes.begun(10)
    assert gate.open
    publishes.begun(10)
    assert not gate.open
    publishes.ended(10)
    assert not gate.open
    publishes.ended(10)
    assert gate.open


def test_a_full_buffer_pauses_publishing_connections_until_half_empty() -> None:
    of = limits(ManualClock(), buffer_bytes=100)
    (one, one_gate), (other, other_gate), (_, idle_gate) = (connection(of) for _ in range(3))
    one.begun(100)
    assert one_gate.open
    other.begun(20)
    assert (one_gate.open, other_gate.open, idle_gate.open) == (True, False, True)
    one.begun(1)
    assert not one_gate.open
    other.ended(20)
    assert not other_gate.open
    one.ended(100)
    assert (one_gate.open, other_gate.open) == (True, True)


def test_connections_that_come_and_go_do_not_overfill_the_buffer() -> None:
    of, publishing = limits(ManualClock(), buffer_bytes=100), []
    for _ in range(10):
        publishes, gate = connection(of)
        publishes.producer_opens()
        if gate.open:
            publishes.begun(90)
            publishing.append(publishes)
        publishes.lost()
    assert of.buffer.size_bytes == 180
    (waiting, gate), (first, second) = connection(of), publishing
    waiting.producer_opens()
    first.ended(90)
    assert not gate.open
    second.ended(90)
    assert gate.open


def test_a_connection_stays_paused_while_a_second_reason_holds() -> None:
    publishes, gate = connection(limits(ManualClock(), max_pending=1, buffer_bytes=10))
    publishes.begun(11)
    publishes.lift(publishes)
    assert not gate.open


def test_a_rate_of_five_accepts_the_last_of_twenty_messages_after_three_seconds() -> None:
    # 5/s, as recorded.
    clock = ManualClock()
    rate = PublishRate(Rate(messages=5), clock)
    publishes, gate = connection(limits(clock))
    began = clock.now()
    sent = 0
    while sent < 20:
        while gate.open and sent < 20:
            rate.published(publishes, 1, 100)
            sent += 1
        if sent < 20:
            clock.advance(0.01)
    assert 2.9 <= clock.now() - began <= 3.1
    assert rate.limited_times == 16


def test_a_byte_rate_pauses_a_connection_by_published_bytes() -> None:
    clock = ManualClock()
    rate = PublishRate(Rate(size_bytes=1000), clock)
    publishes, gate = connection(limits(clock))
    rate.published(publishes, 1, 3000)
    assert not gate.open
    clock.advance(1.9)
    assert not gate.open
    clock.advance(0.2)
    assert gate.open


def test_removing_a_rate_resumes_paused_connections() -> None:
    clock = ManualClock()
    rate = PublishRate(Rate(messages=1), clock)
    publishes, gate = connection(limits(clock))
    rate.published(publishes, 10, 1)
    assert not gate.open
    rate.change(NO_RATE)
    assert gate.open
    assert not rate.limits


def test_a_lost_connection_is_forgotten_by_buffer_and_rate() -> None:
    clock = ManualClock()
    of = PublishLimits(PublishBuffer(10), PublishRate(Rate(messages=1), clock), 0)
    publishes, gate = connection(of)
    publishes.begun(20)
    publishes.published(5, 20)
    publishes.lost()
    gate.end()
    clock.advance(10.0)
    publishes.ended(20)
    assert of.buffer.size_bytes == 0

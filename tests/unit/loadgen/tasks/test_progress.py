from __future__ import annotations

import asyncio
import queue
import socket

from loadgen.clients.records import Outcome, RequestCounters
from loadgen.tasks.progress import ProgressReceiver, ProgressSender
from tests.support.clocks.settle import settle


def test_totals_of_all_tasks_are_added_up_and_rubbish_is_ignored() -> None:
    # Given
    totals: queue.Queue[RequestCounters] = queue.Queue()
    with ProgressReceiver(totals.put) as receiver:
        senders = [ProgressSender(task, receiver.address) for task in range(2)]
        address = receiver.address
        # When
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"rubbish", receiver.address)
            stranger.sendto(b'{"task": 1, "counters": {"x": 1}}', receiver.address)
            stranger.sendto(b'{"task": 1, "counters": {"families": {}, "latencies": [1]}}', address)
        for sender in senders:
            sender.send(RequestCounters(connected=10, answered=1))
        senders[0].send(RequestCounters(connected=10, answered=5))
        seen = [totals.get(timeout=60) for _ in range(3)]
        for sender in senders:
            sender.close()
    # Then
    assert [each.answered for each in seen] == [1, 2, 6]
    assert seen[-1].connected == 20


async def test_tasks_are_told_to_end_early_now_or_when_they_are_heard_of() -> None:
    # Given a task that the driver has heard of, and one that it has not
    heard: queue.Queue[RequestCounters] = queue.Queue()
    told = [asyncio.Event() for _ in range(2)]
    with ProgressReceiver(heard.put) as receiver:
        senders = [ProgressSender(task, receiver.address) for task in range(2)]
        for sender, event in zip(senders, told, strict=True):
            sender.on_stop(event.set)
        senders[0].send(RequestCounters())
        await asyncio.to_thread(heard.get, timeout=60)
        # When
        receiver.stop()
        senders[1].send(RequestCounters())
        # Then
        for event in told:
            await event.wait()
        for sender in senders:
            sender.close()


async def test_a_stranger_cannot_end_a_task() -> None:
    # Given
    told = asyncio.Event()
    with ProgressReceiver(lambda _: None) as receiver:
        sender = ProgressSender(0, receiver.address)
        sender.on_stop(told.set)
        sender.send(RequestCounters())
        # When
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"stop", sender.address)
            await settle()
        strange = told.is_set()
        receiver.stop()
        sender.send(RequestCounters())
        # Then the driver can
        await told.wait()
        sender.close()
    assert not strange


def test_the_agreed_start_is_told_once_it_is_known() -> None:
    seen: queue.Queue[float | RequestCounters] = queue.Queue()
    with ProgressReceiver(seen.put, seen.put) as receiver:
        sender = ProgressSender(0, receiver.address)
        sender.send(RequestCounters(connected=1))
        sender.t0_epoch_seconds = 1234.5
        sender.send(RequestCounters(connected=2))
        told = [seen.get(timeout=60) for _ in range(3)]
        sender.close()
    assert told == [RequestCounters(connected=1), 1234.5, RequestCounters(connected=2)]


def test_a_sender_without_an_address_is_silent() -> None:
    sender = ProgressSender(0, None)
    sender.send(RequestCounters())
    sender.close()


def test_every_outcome_has_its_counter() -> None:
    counters = RequestCounters()
    for outcome in Outcome:
        counters.count(outcome)
    assert [getattr(counters, each.value) for each in Outcome] == [1] * len(Outcome)


def test_counters_travel_whole_and_in_one_datagram() -> None:
    # Given a run of six families, hours in
    counters = RequestCounters(*[10**9] * 9, phase="warm-up")
    for family in ("once", "polite", "java-watch", "java-poll", "cpp", "go"):
        counters.family(family).arrived = counters.family(family).refused = 10**9
    counters.latencies = [10**7] * len(counters.latencies)
    totals: queue.Queue[RequestCounters] = queue.Queue()
    with ProgressReceiver(totals.put) as receiver:
        sender = ProgressSender(0, receiver.address)
        # When
        sender.send(counters)
        # Then
        assert totals.get(timeout=60) == counters
        sender.close()


def test_families_and_latencies_of_tasks_add_up() -> None:
    # Given
    one, other = RequestCounters(phase="warm-up"), RequestCounters()
    one.count(Outcome.ANSWERED, seconds=0.2, family="go")
    other.count(Outcome.ANSWERED, seconds=0.2, family="go")
    other.count(Outcome.REFUSED, seconds=0.2, family="go")
    other.count(Outcome.TIMEOUT, seconds=30.0, family="cpp")
    # When
    total = one.plus(other)
    # Then
    assert sum(total.latencies) == max(total.latencies) == 2
    assert (total.families["go"].refused, total.families["cpp"].lost) == (1, 1)
    assert total.phase == "warm-up"

from __future__ import annotations

import asyncio
import queue
import socket
import zlib

from loadgen.engine.progress import ProgressReceiver, ProgressSender
from loadgen.engine.rows import Outcome, RequestRow
from loadgen.engine.totals import BUCKETS, Totals
from tests.support.clocks.settle import settle


def test_totals_of_all_tasks_are_added_up_and_rubbish_is_ignored() -> None:
    # Given
    totals: queue.Queue[Totals] = queue.Queue()
    with ProgressReceiver(totals.put) as receiver:
        senders = [ProgressSender(task, receiver.address) for task in range(2)]
        address = receiver.address
        # When
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"rubbish", receiver.address)
            for totals_of_a_stranger in ('{"started": "x"}', '{"latencies": {"g": [1]}}'):
                told = f'{{"task": 1, "t0_epoch_seconds": 1, "totals": {totals_of_a_stranger}}}'
                stranger.sendto(zlib.compress(told.encode()), address)
        for sender in senders:
            sender.send(Totals(connected=10, started=1))
        senders[0].send(Totals(connected=10, started=5))
        seen = [totals.get(timeout=60) for _ in range(3)]
        for sender in senders:
            sender.close()
    # Then
    assert [each.started for each in seen] == [1, 2, 6]
    assert seen[-1].connected == 20


async def test_tasks_are_told_to_end_early_now_or_when_they_are_heard_of() -> None:
    # Given a task that the driver has heard of, and one that it has not
    heard: queue.Queue[Totals] = queue.Queue()
    told = [asyncio.Event() for _ in range(2)]
    with ProgressReceiver(heard.put) as receiver:
        senders = [ProgressSender(task, receiver.address) for task in range(2)]
        for sender, event in zip(senders, told, strict=True):
            sender.on_stop(event.set)
        senders[0].send(Totals())
        await asyncio.to_thread(heard.get, timeout=60)
        # When
        receiver.stop()
        senders[1].send(Totals())
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
        sender.send(Totals())
        # When
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"stop", sender.address)
            await settle()
        strange = told.is_set()
        receiver.stop()
        sender.send(Totals())
        # Then the driver can
        await told.wait()
        sender.close()
    assert not strange


def test_the_agreed_start_is_told_once_it_is_known() -> None:
    seen: queue.Queue[float | Totals] = queue.Queue()
    with ProgressReceiver(seen.put, seen.put) as receiver:
        sender = ProgressSender(0, receiver.address)
        sender.send(Totals(connected=1))
        sender.t0_epoch_seconds = 1234.5
        sender.send(Totals(connected=2))
        told = [seen.get(timeout=60) for _ in range(3)]
        sender.close()
    assert told == [Totals(connected=1), 1234.5, Totals(connected=2)]


def test_a_sender_without_an_address_is_silent() -> None:
    sender = ProgressSender(0, None)
    sender.send(Totals())
    sender.close()


def row(operation: str, outcome: Outcome, seconds: float = 0.2) -> RequestRow:
    return RequestRow(0, "g", "go", operation, "t/n", due=1.0, done=1.0 + seconds, outcome=outcome)


def test_totals_of_a_hundred_groups_travel_in_one_datagram() -> None:
    totals = Totals(phase="warm-up")
    for number in range(100):
        name = f"group-{number:034}"
        totals.latencies[name] = [10**7] * BUCKETS
        totals.ended.update({f"{name} list {each}": 10**9 for each in Outcome})
        totals.clients.update({f"{name} {what}": 10**6 for what in ("started", "back")})
    seen: queue.Queue[Totals] = queue.Queue()
    with ProgressReceiver(seen.put) as receiver:
        sender = ProgressSender(0, receiver.address)
        sender.send(totals)
        assert seen.get(timeout=60) == totals
        sender.close()


def test_totals_add_up() -> None:
    one, other = Totals(phase="warm-up"), Totals(phase="measure")
    one.end(row("list", Outcome.ANSWERED))
    other.end(row("list", Outcome.ANSWERED))
    other.end(row("watch", Outcome.REFUSED))
    total = one + other
    assert sum(total.all_latencies) == max(total.latencies["g"]) == 2
    assert total.ended == {"g list answered": 2, "g watch refused": 1}
    assert total.of(Outcome.ANSWERED, Outcome.REFUSED) == 3
    assert total.phase == "measure"

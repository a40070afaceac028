from __future__ import annotations

import io
import json
import queue
import socket

from loadgen.live import (
    ProgressReceiver,
    ProgressSender,
    StormCounters,
    progress_display,
    progress_line,
)
from loadgen.task_report import Outcome


def test_totals_of_all_tasks_are_added_up_and_rubbish_is_ignored() -> None:
    # Given
    totals: queue.Queue[StormCounters] = queue.Queue()
    with ProgressReceiver(totals.put) as receiver:
        senders = [ProgressSender(task, receiver.address) for task in range(2)]
        # When
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"rubbish", receiver.address)
            stranger.sendto(b'{"task": 1, "counters": {"x": 1}}', receiver.address)
        for sender in senders:
            sender.send(StormCounters(connected=10, answered=1))
        senders[0].send(StormCounters(connected=10, answered=5))
        seen = [totals.get(timeout=10) for _ in range(3)]
        for sender in senders:
            sender.close()
    # Then
    assert [each.answered for each in seen] == [1, 2, 6]
    assert seen[-1].connected == 20


def test_a_sender_without_an_address_is_silent() -> None:
    sender = ProgressSender(0, None)
    sender.send(StormCounters())
    sender.close()


def test_every_outcome_has_its_counter() -> None:
    counters = StormCounters()
    for outcome in Outcome:
        counters.count(outcome)
    assert [getattr(counters, each.value) for each in Outcome] == [1] * len(Outcome)


def test_without_a_terminal_progress_is_json_lines() -> None:
    out = io.StringIO()
    with progress_display(10, out) as on_progress:
        on_progress(StormCounters(answered=3))
    assert json.loads(out.getvalue())["progress"]["answered"] == 3


def test_the_line_for_people_counts_what_was_lost() -> None:
    line = progress_line(StormCounters(connected=9, timeout=1, disconnected=2, bytes=1_500_000), 10)
    assert "connected 9 of 10" in line
    assert "lost 3" in line
    assert "1.5 MB" in line

"""How often the kernel is asked whether a server's end still stands."""

from __future__ import annotations

import itertools
import socket

import pytest

from loadgen.stuck_peers import close_watch
from loadgen.stuck_peers.close_watch import (
    LONGEST_PAUSE_SECONDS,
    LOOK_EVERY_SECONDS,
    CloseWatch,
)
from tests.support.clocks.manual_clock import ManualClock


@pytest.mark.parametrize(
    ("seconds_a_look", "pause"), [(0.0, LOOK_EVERY_SECONDS), (3_600.0, LONGEST_PAUSE_SECONDS)]
)
def test_the_kernel_is_asked_again_soon_however_long_it_took(
    monkeypatch: pytest.MonkeyPatch, seconds_a_look: float, pause: float
) -> None:
    clock, moments = ManualClock(), itertools.count()
    asked: list[float] = []
    monkeypatch.setattr(close_watch.time, "perf_counter", lambda: next(moments) * seconds_a_look)
    monkeypatch.setattr(close_watch, "_stands", lambda *_: asked.append(clock.now()))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        watch = CloseWatch(clock, loopback=True)
        watch.watch(ours, lambda: None)
        clock.advance(3 * pause + LOOK_EVERY_SECONDS)
        watch.forget(ours.fileno())
    assert len(asked) >= 3

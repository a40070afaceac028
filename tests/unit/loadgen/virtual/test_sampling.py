"""How often a run in virtual time is looked at."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from loadgen.clients.context import RunTime
from loadgen.servers.scrape import SCRAPE_SECONDS
from loadgen.virtual import sampling
from loadgen.virtual.sampling import LONGEST_INTERVAL_SECONDS, Sampler
from tests.support.clocks.manual_clock import ManualClock

if TYPE_CHECKING:
    import pytest


def test_looks_become_more_seldom_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "_SAMPLES_AT_ONE_PACE", 2)
    clock = ManualClock()
    looks: list[float] = []
    monkeypatch.setattr(Sampler, "_take", lambda _: looks.append(clock.now()))
    sampler = Sampler({}, clock, RunTime(clock.now, clock.now()))
    sampler.start()
    clock.advance(100 * LONGEST_INTERVAL_SECONDS)
    pauses = [after - before for before, after in pairwise(looks)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (SCRAPE_SECONDS, LONGEST_INTERVAL_SECONDS)

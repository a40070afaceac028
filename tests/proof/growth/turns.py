"""Turns of asyncio's loop, timed by processor time, and the stack of the longest."""

import asyncio
import gc
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

_ROOT = f"{Path(__file__).parents[3]}/"
_LOOK_EVERY_SECONDS = 0.003
_PLACES_SHOWN, _FRAMES_SHOWN = 3, 4


class Turn(NamedTuple):
    """A turn: its processor time, the garbage collector's part, and its stack."""

    millis: float = 0.0
    collector_millis: float = 0.0
    places: str = ""

    @property
    def own_millis(self) -> float:
        return self.millis - self.collector_millis

    def __str__(self) -> str:
        collector = f"{self.collector_millis:.1f} ms of it collecting garbage"
        return f"{self.millis:.1f} ms, {collector}; seen at: {self.places or 'nothing'}"


class TimedTurns:
    """The longest turns since the last take; a thread samples the loop's stack.

    Mutable: the longest, and samples of the running turn.
    """

    def __init__(self) -> None:
        self._longest = self._longest_own = Turn()
        self._collecting = self._collected = 0.0
        self._seen: Counter[str] = Counter()
        self._running = False
        self._thread = threading.get_ident()

    def take(self) -> tuple[Turn, Turn]:
        """Return the longest turn, and the longest without the collector's time; reset both."""
        found = self._longest, self._longest_own
        self._longest = self._longest_own = Turn()
        return found

    def time(self, handle: asyncio.Handle) -> None:
        """Run a callback, which is a turn."""
        self._collected, self._running = 0.0, True
        began = time.thread_time()
        _run(handle)
        millis = 1_000 * (time.thread_time() - began)
        self._running = False
        collected = 1_000 * self._collected
        if millis > self._longest.millis or millis - collected > self._longest_own.own_millis:
            places = ", ".join(f"{n} x {at}" for at, n in self._seen.most_common(_PLACES_SHOWN))
            turn = Turn(millis, collected, places)
            self._longest = max(self._longest, turn)
            self._longest_own = max(self._longest_own, turn, key=lambda one: one.own_millis)
        self._seen.clear()

    def collect(self, phase: str, _: dict[str, Any]) -> None:
        """Time the garbage collector, as its callback."""
        if phase == "start":
            self._collecting = time.thread_time()
        else:
            self._collected += time.thread_time() - self._collecting

    def look(self, ended: threading.Event) -> None:
        """Sample a turn's stack repeatedly."""
        while not ended.wait(_LOOK_EVERY_SECONDS):
            frame = sys._current_frames().get(self._thread)
            if self._running and frame is not None:
                self._seen[_place(frame)] += 1


_run = asyncio.Handle._run


@contextmanager
def timed_turns() -> Iterator[TimedTurns]:
    """Time every callback of asyncio's loops in this thread."""
    turns, ended = TimedTurns(), threading.Event()
    watcher = threading.Thread(target=turns.look, args=(ended,), daemon=True)
    asyncio.Handle._run = lambda handle: turns.time(handle)  # type: ignore[method-assign]
    gc.callbacks.append(turns.collect)
    watcher.start()
    try:
        yield turns
    finally:
        ended.set()
        watcher.join()
        gc.callbacks.remove(turns.collect)
        asyncio.Handle._run = _run  # type: ignore[method-assign]


def _place(frame: FrameType | None) -> str:
    """Return the innermost lines of this repository, the caller first."""
    found: list[str] = []
    while frame is not None and len(found) < _FRAMES_SHOWN:
        file = frame.f_code.co_filename
        if file == __file__:
            break
        if file.startswith(_ROOT) and ".venv" not in file:
            found.insert(0, f"{file.removeprefix(_ROOT)}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    return " > ".join(found) or "no line of ours"

"""One line about a run in virtual time: how far it is, how long that took, and what came of it."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from loadgen.live.display import Observer
from loadgen.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.clients.records import Look, RequestCounters

_EVERY_SECONDS = 1.0


@contextmanager
def simulated_display(stream: TextIO, *, as_json: bool = False) -> Iterator[Observer]:
    """Show a run in virtual time on ``stream``: one line that changes, or else a line a second.

    The run is only looked at, from a thread: it has no time of its own for this.
    """
    if as_json:
        yield Observer()
        return
    looks: list[Look] = []
    begun, ended = time.monotonic(), threading.Event()

    def line() -> str:
        took = time.monotonic() - begun
        return simulated_line(*looks[0](), took) if looks else "making the servers and their topics"

    def tell() -> None:
        told = -1.0
        while not ended.wait(_EVERY_SECONDS):
            at = looks[0]()[0] if looks else 0.0
            if at != told:
                told = at
                stream.write(f"{line()}\n")
                stream.flush()

    if stream.isatty():
        with Live(
            get_renderable=lambda: Text(line(), overflow="ellipsis", no_wrap=True),
            console=Console(file=stream), refresh_per_second=4, transient=True,
        ):  # fmt: skip
            yield Observer(on_simulation=looks.append)
        return
    thread = threading.Thread(target=tell, name="progress", daemon=True)
    thread.start()
    try:
        yield Observer(on_simulation=looks.append)
    finally:
        ended.set()
        thread.join()
    stream.write(f"{line()}\n")


def simulated_line(at_seconds: float, counters: RequestCounters, real_seconds: float) -> str:
    """Return one line of less than 80 columns for half a million requests."""
    lost = f", {counters.lost:,} lost" if counters.lost else ""
    done = f"{counters.answered:,} answered, {counters.refused:,} refused{lost}"
    if not counters.started:
        done = f"connected {counters.connected:,}"
    return f"simulated {max(0.0, at_seconds):.1f} s in {format_seconds(real_seconds)}: {done}"

"""The servers of a run as rows of the screen: bars of limits, memory, processor, descriptors."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from rich.text import Text

from loadgen.units import format_bytes, format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadgen.servers.series import WatchedServers

_BAR = 24
_CPU_SECONDS = 2.0
_FULL = 0.9


class ServerRows:
    """Shows what each watched server holds of its limits, and what its process uses.

    Mutable state: processor time over the last seconds, for its growth.
    """

    def __init__(self, watch: WatchedServers, now: Callable[[], float] = time.monotonic) -> None:
        self._watch = watch
        self._now = now
        self._cpu: dict[str, deque[tuple[float, float]]]
        self._cpu = {name: deque() for name in watch.processes}

    def lines(self) -> Iterator[Text]:
        """Yield at most three lines for each server; a figure that nobody tells is left out."""
        for name, process in self._watch.processes.items():
            figures = process.figures()
            label = name
            for kind in ("heap", "direct"):
                if figures.get(f"{kind}.limit", 0) > 0:
                    yield _bar_line(label, kind, figures)
                    label = ""
            yield _use_line(label, figures, self._busy(name, figures.get("cpu.seconds")))

    def _busy(self, name: str, seconds: float | None) -> float | None:
        """Return how many processors the process kept busy lately."""
        if seconds is None:
            return None
        seen, at = self._cpu[name], self._now()
        seen.append((at, seconds))
        while len(seen) > 2 and seen[1][0] <= at - _CPU_SECONDS:
            seen.popleft()
        before, then = seen[0]
        return (seconds - then) / (at - before) if at > before else None


def _bar_line(label: str, kind: str, figures: Mapping[str, float]) -> Text:
    used, limit = figures.get(f"{kind}.used", 0.0), figures[f"{kind}.limit"]
    waiting = figures.get(f"{kind}.waiting", 0.0)
    share = min(1.0, used / limit)
    line = Text(f" {label:<8}{kind:<7}")
    line.append_text(bar(share, _BAR, "red" if share >= _FULL else "green"))
    line.append(f" {format_bytes(used)} of {format_bytes(limit)}")
    return line.append(f"  {format_count(waiting)} wait" if waiting else "")


def _use_line(label: str, figures: Mapping[str, float], busy: float | None) -> Text:
    parts = []
    if "resident" in figures:
        parts.append(f"memory {format_bytes(figures['resident'])}")
    if "unread" in figures:
        parts.append(f"unread {format_bytes(figures['unread'])}")
    if busy is not None:
        parts.append(f"CPU {busy:.2f}")
    if "descriptors" in figures:
        limit = figures.get("descriptors.limit")
        of = f" of {format_count(limit)}" if limit else ""
        parts.append(f"files {format_count(figures['descriptors'])}{of}")
    return Text(f" {label:<8}{'  '.join(parts) or 'tells nothing'}")


def bar(share: float, width: int, style: str) -> Text:
    """Return a bar that is full to a share; what is more than nothing shows."""
    full = min(width, max(round(share * width), 1 if share > 0 else 0))
    return Text("█" * full, style).append("░" * (width - full), "bright_black")

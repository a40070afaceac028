"""Notices that a run could not show what limits do, and says what would.

On the loopback the kernel takes megabytes of answers for each connection that nobody reads, so that
a server hands everything on at once and its limits are never reached. Limits that are chosen by
such a run are far too low.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.tables import against_limit
from loadgen.units import format_bytes
from server.server_info import SEND_BUFFER_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.report_data import AccountedMemory, RunSummary

# Under this share of a limit nothing is said about how the limit behaves.
_IN_SIGHT = 0.1
_SEND_BUFFER_BYTES = 65_536


def hidden_effect(summary: RunSummary) -> str | None:
    """Say in a sentence or two why the limits were out of sight; None where they were not."""
    watched = dict(_limited(summary))
    if not watched or summary.refused_total or summary.failed:
        return None
    process, memory = max(watched.items(), key=lambda item: _share(summary, *item))
    if memory.peak_bytes is None or _share(summary, process, memory) >= _IN_SIGHT:
        return None
    asked_bytes = _asked_bytes(summary)
    found = (
        f"The limits were out of sight: direct memory peaked at {against_limit(memory)} in the "
        f"{process}"
    )
    if asked_bytes < memory.limit_bytes:
        return f"{found}, as all answers together are {format_bytes(asked_bytes)}: {_MORE}."
    return (
        f"{found}, as the kernel's socket buffers took most of the answers "
        f"({format_bytes(asked_bytes)} in all): {' '.join(_remedies(summary))}"
    )


_MORE = "use more --clients, or slower readers (--read-rate)"


def _remedies(summary: RunSummary) -> Iterator[str]:
    settings = [facts.settings for facts in summary.servers.values()]
    if any(each.get(SEND_BUFFER_KEY) == "0" for each in settings):
        yield f"start the servers with {SEND_BUFFER_KEY}={_SEND_BUFFER_BYTES}, or {_MORE}."
    else:
        yield f"{_MORE}."
    if any(each.get("floodgateProfile") == "floodgate" for each in settings):
        yield (
            "Profile floodgate shares the bytes of equal answers; floodgateProfile=pulsar shows "
            "what a Pulsar needs."
        )


def _limited(summary: RunSummary) -> Iterator[tuple[str, AccountedMemory]]:
    for name, memory in summary.processes.items():
        if memory.direct is not None:
            yield name, memory.direct


def _share(summary: RunSummary, process: str, memory: AccountedMemory) -> float:
    """Return what waited in a process, accounted or seen in its queues, as a share of the limit."""
    pending = summary.processes[process].outbound_pending_peak_bytes
    return max(memory.peak_bytes or 0, pending or 0) / memory.limit_bytes


def _asked_bytes(summary: RunSummary) -> int:
    """Return what all answers hold together, those of stuck peers included."""
    each = summary.bytes_per_answer[1] if summary.bytes_per_answer else 0
    unread = summary.stuck.peers * summary.stuck.pipelined * each if summary.stuck else 0
    return summary.received_bytes + unread

"""The warning that a run could not show what limits do, and what would.

On the loopback the kernel takes megabytes of answers for each connection that nobody reads, so that
a server hands everything on at once and its limits are never reached. Limits that are chosen by
such a run are far too low.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.report.figures import against_limit
from loadgen.scenarios.registry import kind_named
from loadgen.units import format_bytes
from server.server_info import SEND_BUFFER_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.results.summary import AccountedMemory, RunSummary
    from loadgen.scenarios.kind import ReportWords

# Under this share of a limit nothing is said about how the limit behaves.
_IN_SIGHT = 0.1
_SEND_BUFFER_BYTES = 65_536


def hidden_effect(summary: RunSummary) -> str | None:
    """Say in a sentence or two why the limits were out of sight; None where they were not."""
    words = kind_named(summary.scenario).words
    if not words.lists_topics:
        return None
    watched = list(_limited(summary))
    if not watched or summary.refused_total or summary.failed:
        return None
    process, kind, memory = max(watched, key=lambda each: _share(summary, *each))
    if memory.peak_bytes is None or _share(summary, process, kind, memory) >= _IN_SIGHT:
        return None
    found = (
        f"The limits were out of sight: {kind} memory peaked at {against_limit(memory)} in the "
        f"{process}"
    )
    asked_bytes = _asked_bytes(summary)
    if asked_bytes < memory.limit_bytes:
        return (
            f"{found}, as all answers together are {format_bytes(asked_bytes)}: use {words.more}."
        )
    return f"{found}, {' '.join(_causes(summary, words, format_bytes(asked_bytes)))}"


def _causes(summary: RunSummary, words: ReportWords, asked: str) -> Iterator[str]:
    """Say what kept memory low, the sharing of answers first, and what to change."""
    settings = [facts.settings for facts in summary.servers.values()]
    kernel, remedy = "the kernel's socket buffers took most of the answers", f"use {words.more}."
    unset = any(each.get(SEND_BUFFER_KEY) == "0" for each in settings)
    if unset:
        remedy = f"start the servers with {SEND_BUFFER_KEY}={_SEND_BUFFER_BYTES}, or {remedy}"
    if not any(each.get("floodgateProfile") == "floodgate" for each in settings):
        yield f"as {kernel} ({asked} in all): {remedy}"
        return
    yield (
        f"as profile floodgate shares the bytes of equal answers ({asked} in all): "
        "floodgateProfile=pulsar shows what a Pulsar needs."
    )
    if unset:
        yield f"And {kernel}: {remedy}"
    elif words.more_if_shared:
        yield f"Or {remedy}"


def _limited(summary: RunSummary) -> Iterator[tuple[str, str, AccountedMemory]]:
    for name, memory in summary.processes.items():
        for kind, part in (("direct", memory.direct), ("heap", memory.heap)):
            if part is not None:
                yield name, kind, part


def _share(summary: RunSummary, process: str, kind: str, memory: AccountedMemory) -> float:
    """Return what waited in a process as a share of a limit: direct memory is in queues, too."""
    pending = summary.processes[process].outbound_pending_peak_bytes if kind == "direct" else None
    return max(memory.peak_bytes or 0, pending or 0) / memory.limit_bytes


def _asked_bytes(summary: RunSummary) -> int:
    """Return what all answers hold together, those of stuck peers included."""
    each = summary.bytes_per_answer[1] if summary.bytes_per_answer else 0
    unread = summary.stuck.peers * summary.stuck.pipelined * each if summary.stuck else 0
    return summary.received_bytes + unread

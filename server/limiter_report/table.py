"""Report on the holders of memory as a table for people, at most 100 columns wide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.limiter_report.report import owner_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from limiter.memory.dual_limiter import LimitType
    from limiter.permits.holder_lines import HolderLine
    from server.limiter_report.report import BudgetReport, OldestWaiter, StoredMessages

COLUMNS = 100
_LINE = "{:<22} {:<20} {:>13} {:>7} {:>13} {:>7} {:>5} {:>6}"
_HEADINGS = ("connection", "namespace", "bytes", "permits", "of shared", "sharers", "waits", "age")


def limiter_table(
    budgets: Mapping[LimitType, BudgetReport], messages: StoredMessages | None = None
) -> str:
    """Return both budgets as text, each with its figures and a line per holder."""
    lines = [line.rstrip() for one, report in budgets.items() for line in _budget(one, report)]
    if messages is not None:
        lines += _messages(messages)
    return "\n".join(lines)


def _messages(messages: StoredMessages) -> Iterator[str]:
    limit = f"{messages.limit_bytes:,}" if messages.limit_bytes > 0 else "unlimited"
    yield "STORED MESSAGES, bytes"
    yield f"  {messages.stored_bytes:,} of {limit} stored; {messages.refused:,} were refused"
    yield ""


def _budget(limit_type: LimitType, report: BudgetReport) -> Iterator[str]:
    figures = report.statistics
    limit = f"{figures.max_permits:,}" if figures.max_permits > 0 else "unlimited"
    places = f"{figures.max_queue_size:,}" if figures.max_queue_size > 0 else "unlimited"
    yield f"{limit_type.value.upper()} MEMORY, bytes; policy {report.policy}"
    yield (
        f"  {figures.acquired_permits:,} of {limit} held, "
        f"at most {figures.high_water_permits:,} so far"
    )
    if figures.overdrafts_total:
        yield (
            f"  {figures.overdraft_permits:,} beyond the limit; "
            f"that happened {figures.overdrafts_total:,} times"
        )
    yield (
        f"  {figures.queue_size:,} of {places} places in the queue taken, "
        f"each for {report.timeout_seconds:g} s at most"
    )
    if report.oldest_waiter is not None:
        yield from _oldest_waiter(report.oldest_waiter)
    yield ""
    yield from _holders(report)
    yield ""


def _oldest_waiter(waiter: OldestWaiter) -> Iterator[str]:
    yield f"  the oldest, {waiter.age_seconds:.1f} s, is of {_printable(waiter.owner, 60)}"
    yield f"    for {waiter.size_bytes:,} bytes of {_printable(waiter.namespace, 50)}"


def _holders(report: BudgetReport) -> Iterator[str]:
    if not report.holders_total:
        yield "  nobody holds or waits for anything"
        return
    yield _LINE.format(*_HEADINGS)
    for line in report.holders:
        yield _holder(line)
    more = report.holders_total - len(report.holders)
    if more:
        yield f"  and {more:,} more"


def _holder(line: HolderLine) -> str:
    return _LINE.format(
        _end_of(owner_name(line.owner), 22),
        _printable(line.namespace, 20),
        _bytes(line.held),
        f"{line.permits:,}",
        _bytes(line.shared) if line.shared else "-",
        f"{line.sharers:,}" if line.shared else "-",
        f"{line.waiting:,}" if line.waiting else "-",
        "-" if line.age_seconds is None else f"{line.age_seconds:.1f}"[:6].rstrip("."),
    )


def _bytes(size_bytes: int) -> str:
    text = f"{size_bytes:,}"
    return text if len(text) <= 13 else f"{size_bytes / 2**30:,.0f} GiB"


def _printable(text: str, length: int) -> str:
    text = text if len(text) <= length else f"{text[: length - 1]}…"
    return "".join(one if one.isprintable() else "?" for one in text)


def _end_of(name: str, length: int) -> str:
    """Keep the end of an overlong name: an address keeps its port."""
    return _printable(name if len(name) <= length else f"…{name[1 - length :]}", length)

"""A dry run for people and for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table

from loadgen.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.documents.document import Document
    from loadgen.dry_run.machine import Machine
    from loadgen.dry_run.needs import Needs
    from loadgen.dry_run.schedule import GroupSchedule

_BINS = 32
_SHOWN_BINS = 16
"""As many as fit beside the figures in 80 columns."""
_BLOCKS = " ▁▂▃▄▅▆▇█"
_LEAST_NAME = 10
SCHEMA_VERSION = 1


def dry_run_document(
    document: Document,
    needs: Needs,
    machine: Machine,
    obstacles: Sequence[str],
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """Return what ``--dry-run --json`` prints."""
    until = max(needs.last_start_seconds, 1.0)
    return {
        "schema_version": SCHEMA_VERSION,
        "scenario": document.name,
        "groups": [_group(group, until) for group in needs.groups],
        "connections": needs.connections,
        "through_proxy": needs.through_proxy,
        "tunnels": needs.tunnels,
        "ports": needs.ports,
        "processes": [asdict(process) for process in needs.processes],
        "answers": needs.answers,
        "answer_bytes": needs.answer_bytes,
        "bytes_at_once": needs.bytes_at_once,
        "connecting_at_once": needs.connecting_at_once,
        "topics": needs.topics,
        "memory_bytes": needs.memory_bytes,
        "disk_bytes": needs.disk_bytes,
        "machine": asdict(machine),
        "obstacles": list(obstacles),
        "warnings": list(warnings),
    }


def _group(group: GroupSchedule, until: float) -> dict[str, Any]:
    return {
        "name": group.name,
        "clients": group.clients,
        "connections": group.sockets,
        "requests": len(group.starts),
        "asks_again": group.later,
        "first_start_seconds": float(group.starts[0]),
        "last_start_seconds": group.last_seconds,
        "starts_per_second": group.rates(_BINS, until),
        "answer_bytes": group.answer_bytes,
        "reading_seconds": group.reading_seconds,
    }


def schedule_table(needs: Needs) -> Table:
    """Return when requests of each group begin, with their rate over time as a tiny plot."""
    until = max(needs.last_start_seconds, 1.0)
    table = Table(box=None, pad_edge=False)
    table.add_column("group", min_width=_LEAST_NAME)
    for head in ("clients", "requests", "first", "last"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column(f"starts, {format_seconds(until)}", no_wrap=True)
    table.add_column("at most", justify="right", no_wrap=True)
    for group in needs.groups:
        rates = group.rates(_SHOWN_BINS, until)
        first, last = (float(group.starts[place]) for place in (0, -1))
        fastest = f"{max(rates):,.1f}/s" if first < last else "all at once"
        table.add_row(
            group.name,
            f"{group.clients:,}",
            f"{len(group.starts):,}{' +' * group.later}",
            format_seconds(first),
            format_seconds(last),
            plot(rates),
            fastest,
        )
    return table


def plot(rates: Sequence[float]) -> str:
    """Draw rates as a line of blocks; what is more than nothing is seen."""
    most = max(rates, default=0.0) or 1.0
    steps = len(_BLOCKS) - 1
    return "".join(_BLOCKS[max(1, round(rate / most * steps)) if rate else 0] for rate in rates)


def needs_table(needs: Needs, machine: Machine) -> Table:
    """Return what the run needs beside what this machine has."""
    table = Table(box=None, pad_edge=False)
    table.add_column("needs", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("of", justify="right", no_wrap=True)
    for row in _rows(needs, machine):
        table.add_row(*row)
    return table


def _rows(needs: Needs, machine: Machine) -> Iterator[tuple[str, str, str]]:
    way = "through the proxy" if needs.through_proxy else "to the broker"
    tunnels = f", {needs.tunnels:,} of them tunnels" if needs.tunnels else ""
    yield f"connections {way}{tunnels}", f"{needs.connections:,}", ""
    for process in needs.processes:
        each = f" (each of {process.count})" if process.count > 1 else ""
        limit = f"{machine.descriptors:,}" if process.own else "unknown"
        yield f"descriptors, {process.name}{each}", f"{process.descriptors:,}", limit
    for address, ports in needs.ports.items():
        yield f"ports, {address}", f"{ports:,}", _known(machine.ports)
    if needs.processes:
        yield "connecting at once", f"{needs.connecting_at_once:,}", _known(machine.backlog)
    more = ", and what clients ask for later" if any(each.later for each in needs.groups) else ""
    answers = plural(needs.answers, "answer")
    yield f"bytes of {answers}{more}", format_bytes(needs.answer_bytes), ""
    yield "bytes under way at once, at most", format_bytes(needs.bytes_at_once), ""
    for process in needs.processes:
        if process.own:
            each = f" (each of {process.count})" if process.count > 1 else ""
            yield f"memory, {process.name}{each}", f"about {format_bytes(process.memory_bytes)}", ""
    if needs.processes:
        in_all = f"about {format_bytes(needs.memory_bytes)}"
        yield "memory in all", in_all, _size(machine.memory_bytes)
    topics = f", {plural(needs.topics, 'topic')}" if needs.topics else ""
    yield f"disk{topics}", f"about {format_bytes(needs.disk_bytes)}", _size(machine.disk_bytes)


def _known(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _size(number: int | None) -> str:
    return "unknown" if number is None else format_bytes(number)

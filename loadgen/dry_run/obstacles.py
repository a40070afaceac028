"""Says what does not fit this machine, a sentence each, and what would."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.errors import UsageError
from loadgen.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.dry_run.machine import Machine
    from loadgen.dry_run.needs import Needs


class DoesNotFitError(UsageError):
    """A run does not fit this machine; ``str()`` has a line for each reason."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = tuple(sentences)


def obstacles(needs: Needs, machine: Machine) -> list[str]:
    """Return what keeps a run from fitting a machine."""
    return [*_descriptors(needs, machine), *_others(needs, machine)]


def require_fit(needs: Needs, machine: Machine) -> None:
    """Refuse a run that does not fit.

    Raises:
        DoesNotFitError: It does not.
    """
    found = obstacles(needs, machine)
    if found:
        raise DoesNotFitError(found)


def _descriptors(needs: Needs, machine: Machine) -> Iterator[str]:
    for process in needs.processes:
        if process.own and process.descriptors > machine.descriptors:
            remedy = "use more --tasks or " if process.name == "worker" else "use "
            yield (
                f"the {process.name} needs {process.descriptors:,} descriptors and the hard limit "
                f"is {machine.descriptors:,}: raise it (ulimit -Hn), or {remedy}fewer --clients"
            )


def _others(needs: Needs, machine: Machine) -> Iterator[str]:
    for address, ports in needs.ports.items():
        if machine.ports is not None and ports > machine.ports:
            yield (
                f"{ports:,} connections from {address} need a port each, and "
                f"net.ipv4.ip_local_port_range has {machine.ports:,}: widen it, or use fewer "
                "--clients"
            )
    if machine.backlog is not None and needs.connecting_at_once > machine.backlog:
        yield (
            f"{needs.connecting_at_once:,} clients connect at once, and net.core.somaxconn lets "
            f"{machine.backlog:,} wait: raise it, or use fewer --tasks"
        )
    if machine.memory_bytes is not None and needs.memory_bytes > machine.memory_bytes:
        yield (
            f"about {format_bytes(needs.memory_bytes)} of memory are needed and "
            f"{format_bytes(machine.memory_bytes)} are available: use fewer --clients or topics"
        )
    if machine.disk_bytes is not None and needs.disk_bytes > machine.disk_bytes:
        yield (
            f"about {format_bytes(needs.disk_bytes)} of disk are needed and "
            f"{format_bytes(machine.disk_bytes)} are free: choose another --out, or fewer topics"
        )

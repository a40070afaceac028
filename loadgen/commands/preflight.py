"""The checks before a run, and ``--dry-run``, which is these alone."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from loadgen.cluster import ClusterPlan
from loadgen.documents.patterns import pattern_warnings
from loadgen.dry_run.machine import this_machine
from loadgen.dry_run.needs import RunShape, needs_of
from loadgen.dry_run.obstacles import DoesNotFitError, obstacles
from loadgen.dry_run.view import dry_run_document, needs_table, schedule_table
from loadgen.executors.processes import RunExecutor
from loadgen.places.loopback import is_loopback
from loadgen.report.tables import summary_console

if TYPE_CHECKING:
    from loadgen.documents.document import Document
    from loadgen.dry_run.machine import Machine
    from loadgen.dry_run.needs import Needs
    from loadgen.own_servers.cluster import ClusterWanted
    from loadgen.run.options import RunOptions


def require_room(
    document: Document, options: RunOptions, own: ClusterWanted | None, *, dry: bool, as_json: bool
) -> None:
    """Refuse a run that does not fit this machine, and warn; of a dry run, print what it needs.

    Raises:
        DoesNotFitError: It does not fit.
    """
    cluster = _cluster(options, own)
    warnings = [*document.scenario.warnings, *pattern_warnings(document.scenario, cluster)]
    needs = _needs(document, options, own)
    machine = this_machine(options.out)
    found = obstacles(needs, machine)
    if dry:
        _show(document, needs, machine, found, warnings, as_json=as_json)
    else:
        _warn(warnings, as_json=as_json)
    if found:
        raise DoesNotFitError(found)


def _cluster(options: RunOptions, own: ClusterWanted | None) -> ClusterPlan:
    """Return the settings of the servers that are asked; of somebody else's none are known."""
    if options.cluster is not None:
        return options.cluster
    return ClusterPlan() if own is None else own.files.over(own.cluster)


def _needs(document: Document, options: RunOptions, own: ClusterWanted | None) -> Needs:
    if options.cluster is not None:
        shape = RunShape(1, options.cluster.proxy is not None, sockets=False)
        return needs_of(document.scenario, options.cluster, shape)
    local = options.master is None or options.executor == RunExecutor.PROCESS
    if own is None:
        shape = RunShape(
            tasks=options.tasks,
            proxy=options.proxy_admin_url is not None,
            loopback=is_loopback(document.scenario.service_url),
            local_workers=local,
        )
        return needs_of(document.scenario, document.cluster, shape)
    shape = RunShape(
        tasks=options.tasks,
        own_servers=True,
        makes_topics=own.makes_topics and own.corpus is None,
        proxy=own.files.has_proxy(own.cluster),
        local_workers=local,
    )
    return needs_of(document.scenario, own.files.over(own.cluster), shape)


def _show(
    document: Document,
    needs: Needs,
    machine: Machine,
    found: list[str],
    warnings: list[str],
    *,
    as_json: bool,
) -> None:
    if as_json:
        told = dry_run_document(document, needs, machine, found, warnings)
        sys.stdout.write(f"{json.dumps(told, indent=2, ensure_ascii=False)}\n")
        return
    console = summary_console()
    console.print(f"{document.name}: {document.head.kind}. Nothing was started.\n", markup=False)
    console.print(schedule_table(needs))
    if any(group.later for group in needs.groups):
        console.print("+ first requests; clients ask again as their family does", style="dim")
    console.print()
    console.print(needs_table(needs, machine))
    _warn(warnings, as_json=as_json)


def _warn(warnings: list[str], *, as_json: bool) -> None:
    for warning in warnings:
        told = json.dumps({"warning": warning}, ensure_ascii=False) if as_json else f"! {warning}"
        sys.stderr.write(f"{told}\n")

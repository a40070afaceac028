"""The documents of a run: run.json describes what was run and where, summary.json the figures."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import resource
import shlex
import sys
from dataclasses import asdict
from importlib import metadata
from typing import TYPE_CHECKING, Any

from loadgen.analysis.judging import judge
from loadgen.analysis.measured import Measured
from loadgen.results.writing import (
    SCHEMA_VERSION,
    process_document,
    summarized,
)
from loadgen.scenarios.registry import kind_of
from loadgen.places.sampling import MEMORY_KINDS
from loadgen.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.analysis.splits import Split
    from loadgen.clients.records import TaskReport
    from loadgen.run.options import RunOptions
    from loadgen.scenario import Scenario
    from loadgen.servers.series import WatchedServers

_PACKAGES = ("floodgate", "pyspark", "pyarrow", "uvloop", "protobuf")


def run_document(
    scenario: Scenario, options: RunOptions, reports: Sequence[TaskReport], started_at: str
) -> dict[str, Any]:
    """Return the content of run.json."""
    return {
        **_heading(options),
        "started_at": started_at,
        "command_line": shlex.join(["loadgen", *sys.argv[1:]]),
        "seed": getattr(scenario, "seed", None),
        "config_hash": config_hash(scenario),
        "service_url": scenario.service_url,
        "executor": options.executor,
        "scenario": scenario.model_dump(mode="json"),
        "environment": _environment(),
        "tasks": [asdict(report.facts) for report in reports],
    }


def config_hash(scenario: Scenario) -> str:
    """Return a hash that runs of one scenario share, whichever servers they were against."""
    content = scenario.model_dump(mode="json", exclude={"service_url"})
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def summary_document(
    scenario: Scenario,
    options: RunOptions,
    reports: Sequence[TaskReport],
    watch: WatchedServers,
    splits: Sequence[Split],
) -> dict[str, Any]:
    """Return the content of summary.json."""
    processes = {name: process_document(process) for name, process in watch.processes.items()}
    verdicts = judge(options.thresholds, Measured.of_reports(reports, processes))
    return {
        **_heading(options),
        "scenario": scenario.kind,
        "clients": sum(report.facts.clients for report in reports),
        **summarized(reports, scenario.planned_requests),
        "processes": processes,
        **kind_of(scenario).summarize(scenario, reports),
        "thresholds": [each.document() for each in verdicts],
        "held": list(_held(watch)),
        "splits": [each.document() for each in splits],
    }


def _held(watch: WatchedServers) -> Iterator[str]:
    """Say what servers account for though all clients have left: their books do not balance."""
    for name, process in watch.processes.items():
        for kind in MEMORY_KINDS:
            held = process.held_bytes(kind)
            if held:
                yield f"{format_bytes(held)} of {kind} memory in the {name}"


def first_problems(reports: Sequence[TaskReport]) -> tuple[str, ...]:
    """Return the reasons of the first few wrong answers, each once."""
    wrong = (
        row["reason"]
        for report in reports
        for row in report.rows.select(["outcome", "reason"]).to_pylist()
        if row["outcome"] == "wrong"
    )
    return tuple(dict.fromkeys(wrong))[:3]


def empty_namespaces(scenario: Scenario, reports: Sequence[TaskReport]) -> tuple[str, ...]:
    """Return the namespaces that listed no topic, though they were not known to be empty."""
    known_to_be_empty = {each.name for each in scenario.namespaces if each.topics == 0}
    empty = {
        row["namespace"]
        for report in reports
        for row in report.rows.select(["namespace", "outcome", "topics"]).to_pylist()
        if row["outcome"] == "answered" and row["topics"] == 0
    }
    return tuple(sorted(empty - known_to_be_empty))


def _heading(options: RunOptions) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "name": options.name,
        "label": options.label or options.name,
    }


def _version(package: str) -> str:
    """Return an installed package's version; those of extras need not be there."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _environment() -> dict[str, Any]:
    versions = {package: _version(package) for package in _PACKAGES}
    return {
        "python": platform.python_version(),
        "spark": versions["pyspark"],
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "open_files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "machine": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "implementation": sys.implementation.name,
        "versions": versions,
    }

"""The servers of a run that names none: those of its scenario's cluster, gone with it."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loadgen.errors import UsageError
from loadgen.executors.processes import RunExecutor
from loadgen.own_servers.cluster import (
    ClusterWanted,
    reached,
    running_cluster,
    simulated,
    simulated_scenario,
)
from loadgen.own_servers.configuration import ServerFiles
from loadgen.places.operator_files import read_own_server
from loadgen.run.directory import replaceable_run_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from loadgen.documents.document import Document
    from loadgen.run.options import RunOptions
    from loadgen.scenario import Scenario

_SOMEWHERE = "http://127.0.0.1"
_OF_A_SERVER = ("broker_admin_url", "proxy_admin_url", "broker_pid", "proxy_pid")


def own_cluster_wanted(
    document: Document,
    options: RunOptions,
    given: Mapping[str, Any],
    files: tuple[Path | None, Path | None],
) -> ClusterWanted | None:
    """Return the cluster that is to be started for a run; None where a server is named.

    Raises:
        UsageError: A configuration file cannot be used, or an option goes with a named server.
    """
    if given["service_url"]:
        if document.cluster.events:
            raise UsageError(
                f"{document.name} restarts its own servers while it runs: leave out --service-url, "
                "or cluster.events"
            )
        for role, file in zip(("broker", "proxy"), files, strict=True):
            if file is not None:
                raise UsageError(
                    f"--{role}-conf is for a scenario's own {role}: leave out --service-url, or it"
                )
        return None
    for name in _OF_A_SERVER:
        if given[name] is not None:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is of a running server: name its --service-url as well")
    broker, proxy = files
    return ClusterWanted(
        document.cluster,
        options.out / options.name,
        ServerFiles(read_own_server("broker", broker), read_own_server("proxy", proxy)),
        makes_topics=document.makes_topics,
        corpus=given["corpus"],
    )


def will_watch(options: RunOptions, wanted: ClusterWanted) -> RunOptions:
    """Return the options of a run as they will be, for checks before the servers are there.

    Raises:
        UsageError: See :func:`simulated`.
    """
    if options.executor == RunExecutor.VIRTUAL:
        return replace(options, cluster=simulated(wanted))
    proxy = _SOMEWHERE if wanted.files.has_proxy(wanted.cluster) else None
    return replace(options, broker_admin_url=_SOMEWHERE, proxy_admin_url=proxy)


@contextmanager
def cluster_for(
    document: Document, options: RunOptions, wanted: ClusterWanted | None, *, as_json: bool
) -> Iterator[tuple[Scenario, RunOptions]]:
    """Start the servers that are wanted; hand out the scenario that reaches them, and the options.

    Raises:
        LoadgenError: Topics cannot be made, or a server did not start.
        UsageError: The run's directory cannot be made, or holds another's files.
    """
    if wanted is None:
        yield document.scenario, options
        return
    if options.executor == RunExecutor.VIRTUAL:
        yield simulated_scenario(document), replace(options, cluster=simulated(wanted))
        return
    with (
        replaceable_run_directory(wanted.logs),
        running_cluster(wanted, said(as_json=as_json)) as cluster,
    ):
        yield reached(document, cluster), cluster.watched(options)


def said(*, as_json: bool) -> Callable[[str], None]:
    """Return what tells a step on standard error."""

    def say(sentence: str) -> None:
        sys.stderr.write((json.dumps({"step": sentence}) if as_json else sentence) + "\n")
        sys.stderr.flush()

    return say

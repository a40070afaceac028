"""Runs a document from first to last, and writes the directory of the run."""

from __future__ import annotations

import asyncio
import os
import platform
import resource
import shlex
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any

import uvloop

from loadgen.behaviours.list import List
from loadgen.engine.connecting import raise_open_file_limit
from loadgen.engine.connection import LoadConnection
from loadgen.engine.context import TaskContext
from loadgen.engine.progress import ProgressReceiver
from loadgen.errors import LoadgenError, UsageError
from loadgen.loopback import is_loopback
from loadgen.places.directory import RUN_NAME, run_directory, write_json
from loadgen.places.launcher import running_servers
from loadgen.places.metrics import exported
from loadgen.places.options import resolved
from loadgen.places.processes import run_in_processes
from loadgen.places.relay import Relay
from loadgen.places.sampling import ServerWatch, Target
from loadgen.places.server_facts import read_server_facts
from loadgen.places.shocks import Shocks, shock_events
from loadgen.places.task import TaskPlan
from loadgen.places.topics import known_namespaces
from loadgen.plan.clients import ClientPlan, Namespace
from loadgen.results.tables import write_rows
from proto.version import FLOODGATE_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from loadgen.documents.model import Document
    from loadgen.engine.totals import Totals
    from loadgen.places.launcher import RunningServers
    from loadgen.places.options import RunOptions
    from loadgen.places.sampling import Samples
    from loadgen.places.task import TaskFacts

SCHEMA_VERSION = 2
_PACKAGES = ("floodgate", "pyspark", "pyarrow", "uvloop", "protobuf")
_NOT_KNOWN = ("AuthenticationError", "AuthorizationError", "the server asks for credentials")


def experiment(document: Document, options: RunOptions) -> Path:
    """Run a document and return the run's directory; an older run of that name is replaced.

    Raises:
        UsageError: The options do not fit each other, the document or this machine.
        LoadgenError: A server cannot be started or reached, or the run failed.
        CutError: It was cut in virtual time.
        KeyboardInterrupt: There was a Ctrl-C before any request had ended.
    """
    document, options = resolved(document, options)
    directory = options.out / options.name
    started_at = datetime.now(UTC)
    with run_directory(directory) as folder:
        measure = _in_virtual_time if options.place == "virtual" else _over_sockets
        with exported(options.name, document.name, options.metrics_port) as take:
            told = measure(document, _observed_by(options, take), folder, directory)
        if not sum(each.requests for each in told.tasks) and told.interrupted:
            raise KeyboardInterrupt
        write_json(
            folder / RUN_NAME,
            {
                "schema_version": SCHEMA_VERSION,
                "run": options.name,
                "name": document.name,
                "title": options.label or document.title or options.name,
                "document": document.model_dump(mode="json", by_alias=True),
                "written": options.written,
                "started_at": started_at.isoformat(),
                "command_line": shlex.join(["loadgen", *sys.argv[1:]]),
                "place": options.place,
                "service_url": options.service_url,
                **told.document(),
                "versions": {package: _version(package) for package in _PACKAGES},
                "machine": _machine(),
            },
        )
    return directory


@dataclass(frozen=True)
class _Told:
    """What run.json tells of a run besides its document and its machine."""

    tasks: Sequence[TaskFacts]
    servers: Mapping[str, Any]
    samples: Samples
    server_version: str
    shocks: Sequence[Mapping[str, Any]] = ()
    aborted: str | None = None

    @property
    def interrupted(self) -> bool:
        return any(each.interrupted for each in self.tasks) and self.aborted is None

    def document(self) -> dict[str, Any]:
        seen = self.samples.seen_at_the_end
        return {
            "tasks": [each.model_dump() for each in self.tasks],
            "servers": {
                role: {**each, "seen_at_the_end": role in seen}
                for role, each in self.servers.items()
            },
            "server_version": self.server_version,
            "shocks": list(self.shocks),
            "interrupted": self.interrupted,
            "aborted": self.aborted,
        }


def _observed_by(options: RunOptions, take: Callable[[Totals], None]) -> RunOptions:
    def observe(totals: Totals) -> None:
        take(totals)
        options.on_progress(totals)

    return replace(options, on_progress=observe)


def _in_virtual_time(
    document: Document, options: RunOptions, folder: Path, directory: Path
) -> _Told:
    from loadgen.places.virtual import run_in_virtual_time

    del directory  # its servers have no logs
    run = run_in_virtual_time(
        document,
        run=options.name,
        on_begun=options.on_simulation,
        may_go_on=options.may_go_on,
    )
    t0_epoch_seconds = run.facts.t0_epoch_seconds
    write_rows(str(folder), options.name, 0, t0_epoch_seconds, run.rows)
    run.samples.write(str(folder), options.name, run.t0, t0_epoch_seconds)
    shocks = [
        {"at": each.at, "what": each.words, "ready_seconds": each.at} for each in document.shocks
    ]
    _write_shocks(folder, options, t0_epoch_seconds, shocks)
    return _Told([run.facts], run.servers, run.samples, FLOODGATE_VERSION, shocks)


# -- over sockets ---------------------------------------------------------------------------------


def _over_sockets(document: Document, options: RunOptions, folder: Path, directory: Path) -> _Told:
    """Drive clients against servers that are there, or are started for the run."""
    if options.master is None:
        connections = sum(each.count * each.connections_each for each in document.clients)
        raise_open_file_limit(-(-connections // (options.tasks or 1)))
    with ExitStack() as stack:
        if options.service_url:
            own, namespaces = None, known_namespaces(document.topics)
        else:
            started = running_servers(document, directory, options.files, options.say)
            own = stack.enter_context(started)
            namespaces = own.namespaces
            options = replace(
                options, service_url=own.service_url, admin_urls=own.admin_urls, pids=own.pids
            )
        _require_namespaces(document, namespaces)
        return _drive(document, namespaces, own, options, folder)


def _drive(
    document: Document,
    namespaces: tuple[Namespace, ...],
    own: RunningServers | None,
    options: RunOptions,
    folder: Path,
) -> _Told:
    admin_urls = options.admin_urls
    admin_url = admin_urls.get("broker") or admin_urls.get("proxy", "")
    server_version = check_reachable(options.service_url)
    targets = [Target(role, url, options.pids.get(role)) for role, url in admin_urls.items()]
    servers = {role: vars(read_server_facts(role, url)) for role, url in admin_urls.items()}
    with ExitStack() as stack:
        watch = stack.enter_context(ServerWatch(targets))
        options.on_samples(watch)
        relay, url = None, options.service_url
        if any(each.cut or each.slow for each in document.shocks):
            connections = sum(each.count * each.connections_each for each in document.clients)
            relay = stack.enter_context(Relay(url, connections))
            url = relay.service_url
        with Shocks(document.shocks, own, relay, admin_url, watch) as shocks:
            observer = _Observer(options, shocks.agreed)
            plan = TaskPlan(
                groups=document.clients,
                namespaces=namespaces,
                phases=document.phases,
                seed=document.seed,
                service_url=url,
                admin_url=admin_url,
                tasks=options.tasks or 1,
                loopback=is_loopback(url),
                progress_address=observer.receiver.address,
                directory=str(folder.resolve()),
                run=options.name,
                anew=document.anew,
            )
            tasks = _run_tasks(plan, options, observer)
    t0_epoch_seconds = tasks[0].t0_epoch_seconds
    watch.write(
        str(folder),
        options.name,
        t0_epoch_seconds - (time.time() - time.perf_counter()),
        t0_epoch_seconds,
    )
    interrupted = any(each.interrupted for each in tasks)
    happened = shocks.happened(interrupted=interrupted)
    _write_shocks(folder, options, t0_epoch_seconds, happened)
    return _Told(tasks, servers, watch, server_version, happened, observer.missed)


def _write_shocks(
    folder: Path, options: RunOptions, t0_epoch_seconds: float, happened: Sequence[dict[str, Any]]
) -> None:
    """Write shocks as events of the driver, whose number is behind those of the tasks."""
    if happened:
        rows, number = shock_events(happened), options.tasks or 1
        write_rows(str(folder), options.name, number, t0_epoch_seconds, rows)


class _Observer:
    """Takes the totals of a run; its mutable state is the expectation that ended it, if one did."""

    def __init__(self, options: RunOptions, on_agreed: Callable[[float], None]) -> None:
        self._options = options
        self.missed: str | None = None
        self.receiver = ProgressReceiver(self._observe, on_agreed)

    def _observe(self, totals: Totals) -> None:
        self._options.on_progress(totals)
        if self.missed is None and self._options.abort_early is not None:
            self.missed = self._options.abort_early(totals)
            if self.missed is not None:
                self.receiver.stop()


def _run_tasks(plan: TaskPlan, options: RunOptions, observer: _Observer) -> list[TaskFacts]:
    plans = [plan.model_copy(update={"task": task}) for task in range(plan.tasks)]
    with ExitStack() as stack:
        receiver = stack.enter_context(observer.receiver)
        if options.place == "processes":
            return run_in_processes(plans)
        # Spark is imported only where it is asked for: it takes a second.
        from loadgen.places.spark import run_in_spark

        return run_in_spark(stack.enter_context(_session(options)), plans, receiver.stop)


@contextmanager
def _session(options: RunOptions) -> Iterator[SparkSession]:
    if options.spark is not None:
        yield options.spark
        return
    from loadgen.spark.session import SparkSettings, spark_session

    settings = SparkSettings("loadgen run", cores=options.tasks or 1, master=options.master)
    with spark_session(settings) as session:
        yield session


def _require_namespaces(document: Document, namespaces: Sequence[Namespace]) -> None:
    """Refuse groups whose namespaces the topics of a file do not have."""
    for group in document.clients:
        first, end = group.namespaces or (0, 1)
        if not 0 <= first < end <= len(namespaces):
            raise UsageError(
                f"group {group.name} has namespaces {first} to {end} of {len(namespaces)}"
            )


def check_reachable(service_url: str) -> str:
    """Connect once, as every client will; return what the server calls its version.

    Raises:
        LoadgenError: Nobody answers there as a Pulsar broker or proxy does.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_connect_once(service_url))


async def _connect_once(service_url: str) -> str:
    context = TaskContext(service_url)
    group, nowhere = List(name="check", count=1), Namespace(name="public/default")
    plan = ClientPlan(0, 0, group, nowhere, 0.0)
    connection = LoadConnection(plan, context, lambda lost, why: None, lambda command: None)
    await context.connector.resolve(service_url)
    failure = await context.connector.connect(connection, 0)
    if failure is not None:
        remedy = "is it running and is this its binary port?"
        if failure.startswith(_NOT_KNOWN):
            remedy = "show credentials that it knows: loadgen --auth-params file:PATH"
        raise LoadgenError(
            f"{service_url} cannot be reached as a Pulsar broker or proxy: {failure}; {remedy}"
        )
    connection.close()
    return connection.handshake.result()


# -- what a run was made with ---------------------------------------------------------------------


def _version(package: str) -> str:
    """Return an installed package's version; those of extras need not be there."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _machine() -> dict[str, Any]:
    return {
        "python": f"{sys.implementation.name} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "open_files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    }

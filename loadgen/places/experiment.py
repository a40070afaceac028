"""The execution of a scenario from start to end, with its results in a run directory."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import re
import resource
import shlex
import sys
import time
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Any

from loadgen.access import WebPages, carried_access
from loadgen.behaviours.list import List
from loadgen.documents.model import outside
from loadgen.engine.connecting import raise_open_file_limit
from loadgen.engine.connection import LoadConnection
from loadgen.engine.context import TaskContext
from loadgen.engine.control_server import ControlServer
from loadgen.errors import LoadgenError, UsageError
from loadgen.loopback import is_loopback
from loadgen.places.directory import RUN_NAME, run_directory, write_json
from loadgen.places.launcher import known_namespaces, running_servers
from loadgen.places.metrics import exported
from loadgen.places.options import resolved
from loadgen.places.processes import run_in_processes
from loadgen.places.relay import Relay
from loadgen.places.sampling import (
    LABEL,
    LARGEST_PAGE_BYTES,
    REQUEST_TIMEOUT_SECONDS,
    UNREADABLE,
    ServerWatch,
)
from loadgen.places.shocks import Shocks, shock_events, told
from loadgen.places.task import TaskPlan
from loadgen.plan.clients import ClientPlan, Namespace
from loadgen.results.merging import merged_files
from loadgen.results.tables import RUN_VERSION, write_rows
from loadgen.stored import folder_here, store_variables
from proto.version import FLOODGATE_VERSION, VERSION
from server.server_info import INFO_KEYS, METRIC, label_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from loadgen.documents.model import Document
    from loadgen.engine.totals import Totals
    from loadgen.places.launcher import RunningServers
    from loadgen.places.options import RunOptions
    from loadgen.places.sampling import Samples
    from loadgen.places.task import TaskFacts

_INFO = re.compile(rf"^({METRIC}|pulsar_version_info)\{{(.*)\}} ", re.MULTILINE)
_BROKERS = "/admin/v2/brokers"
_PACKAGES = ("floodgate", "pyspark", "pyarrow", "uvloop", "protobuf")
_NOT_KNOWN = ("AuthenticationError", "AuthorizationError", "the server asks for credentials")


def experiment(document: Document, options: RunOptions) -> Path:
    """Run a scenario, replacing an older run of the same name; return the run directory.

    Raises:
        UsageError: The options do not fit each other, the scenario or this machine.
        LoadgenError: A server cannot be started or reached, or the run failed.
        CutError: The run was cut in virtual time.
        KeyboardInterrupt: A Ctrl-C before the end of any request.
    """
    document, options = resolved(document, options)
    directory = options.out / options.name
    started_at = datetime.now(UTC)
    with run_directory(directory) as folder:
        measure = _in_virtual_time if options.place == "virtual" else _over_sockets
        scenario, port = document.name, options.metrics_port
        with exported(options.name, scenario, port, options.on_progress) as observe:
            options = replace(options, on_progress=observe)
            found = measure(document, options, folder)
        if happened := found["shocks"]:
            # The driver's number follows those of the tasks.
            number, t0 = options.tasks or 1, found["tasks"][0]["t0_epoch_seconds"]
            write_rows(str(folder), options.name, number, t0, shock_events(happened))
        write_json(
            folder / RUN_NAME,
            {
                "schema_version": RUN_VERSION,
                "run": options.name,
                "name": document.name,
                "title": options.label or document.title or options.name,
                "document": document.model_dump(mode="json", by_alias=True),
                "written": document.written,
                "started_at": started_at.isoformat(),
                "command_line": shlex.join(["loadgen", *sys.argv[1:]]),
                "place": options.place,
                "service_url": options.service_url,
                **found,
                "files": merged_files(folder, [each["task"] for each in found["tasks"]]),
                "versions": {package: _version(package) for package in _PACKAGES},
                "machine": _machine(),
            },
        )
    return directory


def _told(
    tasks: Sequence[TaskFacts],
    servers: Mapping[str, Mapping[str, Any]],
    samples: Samples,
    server_version: str,
    shocks: Sequence[Mapping[str, Any]],
    **early: str | None,
) -> dict[str, Any]:
    """Return the part of run.json that comes from the run itself, such as tasks and shocks.

    The caller adds the scenario and the facts about this machine.

    Raises:
        KeyboardInterrupt: An interrupt before the end of any request.
    """
    interrupted = not any(early.values()) and any(each.interrupted for each in tasks)
    if interrupted and not any(each.requests for each in tasks):
        raise KeyboardInterrupt
    return {
        "tasks": [each.model_dump() for each in tasks],
        "servers": {
            role: {**each, "seen_at_the_end": role in samples.seen_at_the_end}
            for role, each in servers.items()
        },
        "server_version": server_version,
        "shocks": [*shocks],
        "interrupted": interrupted,
        **early,
    }


def _in_virtual_time(document: Document, options: RunOptions, folder: Path) -> dict[str, Any]:
    from loadgen.places.virtual import run_in_virtual_time

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
        told(each, each.at, each.at + bool(each.restart) * each.seconds) for each in document.shocks
    ]
    return _told([run.facts], run.servers, run.samples, FLOODGATE_VERSION, shocks)


# -- over sockets ---------------------------------------------------------------------------------


def _over_sockets(document: Document, options: RunOptions, folder: Path) -> dict[str, Any]:
    """Run a scenario's clients over sockets, against running servers or servers started for it."""
    if not options.elsewhere:
        raise_open_file_limit(-(-document.connections // (options.tasks or 1)))
    with ExitStack() as stack:
        if options.service_url:
            own, namespaces = None, known_namespaces(document.topics)
        else:
            logs = stack.enter_context(folder_here(options.out / options.name))
            started = running_servers(document, logs, options.files, options.say)
            own = stack.enter_context(started)
            namespaces = own.namespaces
            options = replace(
                options, service_url=own.service_url, admin_urls=own.admin_urls, pids=own.pids
            )
        for group in document.clients:  # The namespaces of a topics file are known only now.
            if said := outside(group, len(namespaces)):
                raise UsageError(f"group {group.name}: namespaces {said}")
        return _drive(document, namespaces, own, options, folder)


def _drive(
    document: Document,
    namespaces: tuple[Namespace, ...],
    own: RunningServers | None,
    options: RunOptions,
    folder: Path,
) -> dict[str, Any]:
    admin_urls = options.admin_urls
    admin_url = admin_urls.get("broker") or admin_urls.get("proxy", "")
    server_version = asyncio.run(check_reachable(options.service_url))
    servers = {role: read_server_facts(role, url) for role, url in admin_urls.items()}
    missed: list[str] = []  # The expectation that ended the run.

    def observe(totals: Totals) -> None:
        options.on_progress(totals)
        if not missed and options.abort_early and (found := options.abort_early(totals)):
            missed.append(found)
            control.stop()

    with ExitStack() as stack:
        watch = stack.enter_context(ServerWatch(admin_urls, options.pids))
        options.on_samples(watch)
        relay, url = None, options.service_url
        if any(each.cut or each.slow for each in document.shocks):
            relay = stack.enter_context(Relay(url, document.connections))
            url = relay.service_url
        with Shocks(document.shocks, own, relay, admin_url, watch) as shocks:
            control = ControlServer(options.tasks or 1, observe, shocks.agreed)
            share = partial(
                TaskPlan.share,
                document,
                namespaces,
                service_url=url,
                admin_url=admin_url,
                tasks=options.tasks or 1,
                loopback=is_loopback(url),
                directory=str(folder.resolve()),
                run=options.name,
            )
            tasks, lost = _run_tasks(share, options, control)
    t0 = tasks[0].t0_epoch_seconds
    watch.write(str(folder), options.name, t0 - (time.time() - time.perf_counter()), t0)
    happened = shocks.happened(interrupted=any(each.interrupted for each in tasks))
    aborted = missed[0] if missed else None
    return _told(tasks, servers, watch, server_version, happened, aborted=aborted, lost=lost)


def _run_tasks(
    share: Callable[..., TaskPlan], options: RunOptions, control: ControlServer
) -> tuple[list[TaskFacts], str]:
    numbers = range(options.tasks or 1)
    if options.place == "processes":
        with control.listening() as address:
            plans = [share(task=each, control=address) for each in numbers]
            return run_in_processes(plans, control)
    # Importing Spark takes a second.
    from loadgen.places.spark import driver_address, run_in_spark
    from loadgen.spark.session import SparkSettings, spark_session

    settings = SparkSettings("loadgen run", len(numbers), once=True, master=options.master)
    session = nullcontext(options.spark) if options.spark else spark_session(settings)
    carried = {"access": carried_access(), "store": store_variables()}
    with session as spark, control.listening(*driver_address(spark), carried) as address:
        plans = [share(task=each, control=address) for each in numbers]
        return run_in_spark(spark, plans, control, options.interrupts)


async def check_reachable(service_url: str) -> str:
    """Connect to a service URL once, as each client does; return the server's version.

    Raises:
        LoadgenError: No Pulsar broker or proxy answers at the address.
    """
    context = TaskContext(service_url)
    group, nowhere = List(name="check", count=1), Namespace(name="public/default")
    plan = ClientPlan(0, 0, group, nowhere, 0.0)
    connection = LoadConnection(plan, context, lambda lost, why: None, lambda command, _: None)
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


# -- versions and servers of a run ----------------------------------------------------------------


def _version(package: str) -> str:
    """Return the version of a package, or a note if the package is not installed."""
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


def read_server_facts(process: str, admin_url: str) -> dict[str, Any]:
    """Read a server's version and its settings in ``INFO_KEYS`` from the server's web port.

    Never raises: a version or setting that cannot be read is left out or None.
    """
    url = admin_url.rstrip("/")
    facts = facts_of_page(_text(f"{url}/metrics/"))
    if process == "broker":
        facts["version"] = _text(f"{url}{_BROKERS}/version").strip().strip('"') or facts["version"]
        with suppress(ValueError, TypeError):  # no JSON, or no object
            runtime = json.loads(_text(f"{url}{_BROKERS}/configuration/runtime"))
            settings = {key: str(runtime[key]) for key in INFO_KEYS if key in runtime}
            facts["settings"] = settings or facts["settings"]
    return facts


def facts_of_page(page: str) -> dict[str, Any]:
    """Return the server's version and settings as stated in a page of Prometheus metrics."""
    found = {name: dict(LABEL.findall(labels)) for name, labels in _INFO.findall(page)}
    version = found.get("pulsar_version_info", {}).get("version")
    own = found.get(METRIC, {})
    if own:
        version = FLOODGATE_VERSION.removesuffix(VERSION) + own.get("version", "")
    labels = {key: label_of(key) for key in INFO_KEYS}
    settings = {key: own[name] for key, name in labels.items() if name in own}
    return {"version": version, "settings": settings}


def _text(url: str) -> str:
    """Return the text of the page at a URL; empty if it cannot be read."""
    try:
        return WebPages().read(url, REQUEST_TIMEOUT_SECONDS, LARGEST_PAGE_BYTES)
    except UNREADABLE:
        return ""

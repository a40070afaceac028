"""The options of a run, and checks of them against the scenario and this machine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from loadgen.behaviours.create_and_delete import CreateAndDelete
from loadgen.engine.connecting import parse_service_url
from loadgen.errors import UsageError
from loadgen.places.directory import require_directory_name
from loadgen.places.launcher import ServerFiles
from loadgen.places.shocks import require_own
from loadgen.plan.arrivals import Concurrency
from loadgen.spark.settings import is_local
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from loadgen.documents.model import Document
    from loadgen.engine.totals import Totals
    from loadgen.places.sampling import Samples

Place = Literal["processes", "spark", "virtual"]
_USUAL_TASKS = 2


@dataclass(frozen=True)
class RunOptions:
    """How to run a scenario: servers, tasks, output directory and callbacks.

    Attributes:
        out: The directory of run directories.
        name: The name of the run directory; empty: the scenario's name.
        label: The run's title in reports; empty: the scenario's title or name.
        service_url: The service URL of running servers; empty: start the scenario's servers.
        admin_urls: Web ports of running servers to sample, ``http://host:port`` by role.
        pids: Process ids of running servers by role, on this machine.
        files: An operator's configuration files, which override the keys of started servers.
        tasks: Number of processes, or of Spark tasks, that share the clients; None: two, or one for
            a single client.
        place: Where the tasks run; None: in processes, or in Spark if a master is given.
        master: The Spark master; None for a local session with a slot for each task.
        spark: A running Spark session to use instead of starting one.
        drain: Seconds for requests under way at the end; overrides the scenario's value.
        abort_early: Called with totals; returns an expectation that can no longer be met, which
            ends the run early.
        interrupts: Polled for the number of times that the user interrupted a run in Spark.
        metrics_port: Loopback port that serves the run's metrics during the run.
        may_go_on: Polled in virtual time; if it returns False, the run is cut with ``CutError``.
        on_progress: Called about once a second with totals, from another thread.
        on_samples: Called once with the samples of the servers' metrics.
        on_simulation: Called once, in virtual time, with a function that returns the run's seconds
            and totals.
        say: Called with each step's description before clients start.
    """

    out: Path = Path("out/runs")
    name: str = ""
    label: str = ""
    service_url: str = ""
    admin_urls: Mapping[str, str] = field(default_factory=dict)
    pids: Mapping[str, int] = field(default_factory=dict)
    files: ServerFiles = field(default_factory=ServerFiles)
    tasks: int | None = None
    place: Place | None = None
    master: str | None = None
    spark: SparkSession | None = field(default=None, repr=False)
    drain: float | None = None
    abort_early: Callable[[Totals], str | None] | None = field(default=None, repr=False)
    interrupts: Callable[[], int] = field(default=lambda: 0, repr=False)
    metrics_port: int | None = None
    may_go_on: Callable[[], bool] = field(default=lambda: True, repr=False)
    on_progress: Callable[[Totals], None] = field(default=lambda totals: None, repr=False)
    on_samples: Callable[[Samples], None] = field(default=lambda samples: None, repr=False)
    on_simulation: Callable[[Callable[[], tuple[float, Totals]]], None] = field(
        default=lambda look: None, repr=False
    )
    say: Callable[[str], None] = field(default=lambda sentence: None, repr=False)

    @property
    def elsewhere(self) -> bool:
        """True if tasks run on hosts of a Spark cluster, which have their own ports and limits."""
        master = self.spark.sparkContext.master if self.spark else self.master
        return self.place == "spark" and not is_local(master)


def resolved(document: Document, options: RunOptions) -> tuple[Document, RunOptions]:
    """Check a scenario and its options; return both with all defaults filled in.

    Raises:
        UsageError: The options do not fit the scenario.
    """
    place = options.place or ("spark" if options.master or options.spark else "processes")
    clients = sum(group.count for group in document.clients)
    tasks = options.tasks or min(_USUAL_TASKS, clients)
    name, own_tasks = options.name or document.name, 1 if place == "virtual" else tasks
    options = replace(options, name=name, place=place, tasks=own_tasks)
    require_directory_name(name)
    if not 1 <= tasks <= clients:
        raise UsageError(
            f"--tasks {tasks} does not fit {plural(clients, 'client')}: use 1 to {clients:,}"
        )
    _check_places(document, tasks)
    if options.drain is not None:
        phases = document.phases.model_copy(update={"drain": options.drain})
        document = document.model_copy(update={"phases": phases})
    if options.service_url:
        _check_named_servers(document, options)
    else:
        servers = options.files.over(document.servers)
        document = document.model_copy(update={"servers": servers})
        if options.admin_urls:
            raise UsageError("--admin-url is of a running server: name its --service-url as well")
    if place == "virtual":
        _check_virtual(document, options)
    return document, options


def require_service_url(option: str, url: str) -> None:
    """Check that the value of an option is the service URL of a broker or proxy.

    Raises:
        UsageError: The value is not a service URL.
    """
    try:
        parse_service_url(url)
    except ValueError as error:
        raise UsageError(f"{option} {url[:80]} is {error}") from None


def _check_places(document: Document, tasks: int) -> None:
    for group in document.clients:
        at_once = group.arrive.count if isinstance(group.arrive, Concurrency) else tasks
        if at_once < min(tasks, group.count):
            raise UsageError(
                f"group {group.name}: arrive.count {at_once} cannot be shared by --tasks "
                f"{tasks}: use --tasks {at_once} or fewer"
            )


def _check_named_servers(document: Document, options: RunOptions) -> None:
    require_service_url("--service-url", options.service_url)
    for role in ("broker", "proxy"):
        if getattr(options.files, role).file is not None:
            raise UsageError(
                f"--{role}-conf is for a scenario's own {role}: leave out --service-url, or "
                f"--{role}-conf"
            )
    require_own(document.shocks, options.admin_urls.get("broker", ""))
    for group in document.clients:
        if isinstance(group, CreateAndDelete) and not options.admin_urls:
            raise UsageError(
                f"group {group.name} creates topics by admin REST: name --admin-url "
                "broker=http://host:port"
            )


def _check_virtual(document: Document, options: RunOptions) -> None:
    # Broker and proxy are imported only for virtual time.
    from loadgen.places.virtual import require_virtual

    if options.service_url:
        raise UsageError("--place virtual simulates its own servers: leave out --service-url")
    if options.abort_early is not None:
        raise UsageError("--place virtual cannot end a run early: leave out --abort-early")
    require_virtual(document)

"""Starts the broker of a scenario's cluster and the proxy before it, with their topics."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.documents.document import topic_plan
from loadgen.errors import UsageError
from loadgen.own_servers.configuration import ServerFiles, broker_launch, proxy_launch
from loadgen.scenario import NamespaceExpectation
from loadgen.servers.restarts import restartable_server
from loadgen.topics.corpus import write_corpus
from loadgen.topics.executors import in_this_process
from loadgen.topics.manifest import expected_namespaces, namespace_entry
from loadgen.topics.plan import plan_namespaces
from loadgen.topics.rows import namespace_rows
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadgen.cluster import ClusterPlan, ServerEvent
    from loadgen.documents.document import Document
    from loadgen.run.options import RunOptions
    from loadgen.scenario import Scenario
    from loadgen.servers.processes import ServerProcess
    from loadgen.topics.plan import TopicPlan

_ROWS_PER_FILE = 200_000
_PREFIX = ".cluster-"


@dataclass(frozen=True)
class RunningCluster:
    """Servers that are ready for clients.

    Attributes:
        corpus: The topics that the broker imported; None if it has none.
        events: What is to happen to them while clients are there.
        restart: Kills one by its role, starts it again, and returns its process id.
    """

    broker: ServerProcess
    proxy: ServerProcess | None = None
    corpus: Path | None = None
    events: tuple[ServerEvent, ...] = ()
    restart: Callable[[str], int] | None = None

    @property
    def service_url(self) -> str:
        """The address that clients connect to."""
        return (self.proxy or self.broker).service_url

    def watched(self, options: RunOptions) -> RunOptions:
        """Return the options of a run that watches these servers."""
        return replace(
            options,
            broker_admin_url=self.broker.web_url,
            broker_pid=self.broker.pid,
            proxy_admin_url=self.proxy.web_url if self.proxy else None,
            proxy_pid=self.proxy.pid if self.proxy else None,
            events=self.events,
            restart=self.restart,
        )


@dataclass(frozen=True)
class ClusterWanted:
    """A cluster that is to be started.

    Attributes:
        files: Configuration files that stand over its keys.
        makes_topics: Whether it has the topics of its plan.
        corpus: Topics to import instead.
        logs: The folder of the servers' logs.
    """

    cluster: ClusterPlan
    logs: Path
    files: ServerFiles
    makes_topics: bool = True
    corpus: Path | None = None


def simulated(wanted: ClusterWanted) -> ClusterPlan:
    """Return the cluster in virtual time: with the keys of its files, and topics of its own.

    Raises:
        UsageError: It is to have topics that are in files.
    """
    if wanted.corpus is not None:
        raise UsageError("--corpus: virtual time makes the topics of its cluster; leave it out")
    files, cluster = wanted.files, wanted.cluster
    broker = {**files.broker.keys, **files.broker.over(cluster.broker, {})}
    proxy = {**files.proxy.keys, **files.proxy.over(cluster.proxy or {}, {})}
    has_proxy = files.has_proxy(cluster)
    return cluster.model_copy(update={"broker": broker, "proxy": proxy if has_proxy else None})


def simulated_scenario(document: Document) -> Scenario:
    """Return a document's scenario in virtual time, with what right answers hold as in a real run.

    The names of a namespace are made, hashed and forgotten, one namespace after the other.
    """
    if not document.makes_topics:
        return document.scenario
    plan = topic_plan(document.cluster.topics)
    entries = (
        (each.name, namespace_entry(namespace_rows(plan, each).column("topic")).asked)
        for each in plan_namespaces(plan)
    )
    known = tuple(
        NamespaceExpectation(name=name, topics=listing.topics, hash=listing.hash)
        for name, listing in entries
    )
    return document.scenario.model_copy(update={"namespaces": known})


@contextmanager
def running_cluster(wanted: ClusterWanted, say: Callable[[str], None]) -> Iterator[RunningCluster]:
    """Start a cluster and stop it at the end of the block; nothing of it stays but the logs.

    The proxy stops first, so that it never misses its broker. ``say`` is told what is being done.

    Raises:
        LoadgenError: The topics cannot be made, or a server did not start.
    """
    wanted.logs.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        # Beside the logs, where there is room for a run: /tmp may be a part of the memory.
        temporary = tempfile.TemporaryDirectory(prefix=_PREFIX, dir=wanted.logs.parent)
        folder = Path(stack.enter_context(temporary))
        corpus = wanted.corpus
        if corpus is None and wanted.makes_topics:
            plan = topic_plan(wanted.cluster.topics)
            say(f"making {plan.topics:,} topics in {plural(plan.namespaces, 'namespace')}")
            corpus = _made_topics(plan, folder / "topics")
        importing = ("--import", str(corpus)) if corpus else ()
        say("starting the servers")
        launch = broker_launch(
            wanted.cluster, wanted.files, folder, wanted.logs / "broker.log", importing
        )
        running = {"broker": stack.enter_context(restartable_server(launch))}
        broker, proxy = running["broker"].server, None
        if wanted.files.has_proxy(wanted.cluster):
            launch = proxy_launch(
                wanted.cluster, wanted.files, folder, wanted.logs / "proxy.log", broker
            )
            running["proxy"] = stack.enter_context(restartable_server(launch))
            proxy = running["proxy"].server

        def restart(role: str) -> int:
            return running[role].restart().pid

        yield RunningCluster(broker, proxy, corpus, wanted.cluster.events, restart)


def _made_topics(plan: TopicPlan, directory: Path) -> Path:
    files = max(1, plan.topics // _ROWS_PER_FILE)
    return write_corpus(plan, directory, files, in_this_process(lambda done: None)).directory


def reached(document: Document, cluster: RunningCluster) -> Scenario:
    """Return the scenario of a document at a cluster's address, with what right answers hold."""
    changes: dict[str, object] = {"service_url": cluster.service_url}
    if document.makes_topics and cluster.corpus is not None:
        changes["namespaces"] = expected_namespaces(cluster.corpus, [])
    return document.scenario.model_copy(update=changes)

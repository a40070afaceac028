"""Starting the broker and proxy of a run, with their topics."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.documents.server_keys import FOLDER
from loadgen.errors import UsageError
from loadgen.places.operator_files import OwnServer, local_broker, local_proxy
from loadgen.places.server_process import ServerLaunch, restartable_server
from loadgen.plan.clients import Namespace
from loadgen.stored import StoredPath, placed
from loadgen.topics.corpus import write_corpus
from loadgen.topics.executors import in_this_process
from loadgen.topics.manifest import expected_namespaces, manifest_path
from loadgen.topics.reading import read_own_topics
from loadgen.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadgen.documents.model import Document, Servers, Topics
    from loadgen.places.server_process import RestartableServer

_PREFIX = ".servers-"
_ROWS_PER_FILE = 200_000


@dataclass(frozen=True)
class ServerFiles:
    """An operator's configuration files, whose keys override those of a scenario.

    Attributes:
        broker: The configuration file named by ``--broker-conf``.
        proxy: The configuration file named by ``--proxy-conf``; if it is given, the run has a
            proxy.
    """

    broker: OwnServer = field(default_factory=lambda: OwnServer("broker"))
    proxy: OwnServer = field(default_factory=lambda: OwnServer("proxy"))

    def over(self, servers: Servers) -> Servers:
        """Return a scenario's servers with their keys overridden by the operator's files."""
        proxy = servers.proxy
        if self.proxy.file is not None:
            proxy = {**(proxy or {}), **self.proxy.keys}
        broker = {**servers.broker, **self.broker.keys}
        return servers.model_copy(update={"broker": broker, "proxy": proxy})

    def notes(self) -> list[str]:
        """Return sentences on how the rehearsal's servers differ from the operator's cluster."""
        found = []
        if self.broker.file is None:
            found.append("Without --broker-conf the broker has Pulsar's defaults.")
        if self.proxy.file is None:
            found.append("Without --proxy-conf there is no proxy: clients ask the broker.")
        for each in (self.broker, self.proxy):
            if aside := each.set_aside():
                what = ", ".join(aside)
                found.append(f"Set aside from {each.file}, as all is local here: {what}.")
        return [*found, *self._notices("info")]

    def warnings(self) -> list[str]:
        """Return sentences on keys of the files that have no effect, such as misspelt ones."""
        return self._notices("warning")

    def _notices(self, level: str) -> list[str]:
        return [
            f"{each.file}: {notice.sentence}"
            for each in (self.broker, self.proxy)
            for notice in each.checked().notices
            if notice.level == level
        ]


@dataclass(frozen=True)
class RunningServers:
    """The servers that a run started, ready for clients, and their namespaces.

    Attributes:
        by_role: The server processes, by role.
        namespaces: The namespaces that clients list, each with the size and hash of a right
            listing.
    """

    by_role: Mapping[str, RestartableServer]
    namespaces: tuple[Namespace, ...]

    @property
    def service_url(self) -> str:
        """The service URL for clients: that of the proxy, or of the broker without a proxy."""
        return self.by_role.get("proxy", self.by_role["broker"]).server.service_url

    @property
    def admin_urls(self) -> dict[str, str]:
        """The URLs of the servers' web ports, by role."""
        return {role: each.server.web_url for role, each in self.by_role.items()}

    @property
    def pids(self) -> dict[str, int]:
        """The servers' process ids, by role."""
        return {role: each.server.pid for role, each in self.by_role.items()}


def known_namespaces(topics: Topics, corpus: Path | None = None) -> tuple[Namespace, ...]:
    """Return the namespaces of a run, each with the size and hash of its listing where known.

    Args:
        topics: The topics as the scenario states them.
        corpus: The folder of topics that were generated for the run's own servers.

    Raises:
        UsageError: A folder or list of topics cannot be used.
    """
    if corpus is None and topics.corpus is not None:
        corpus = placed(Path(topics.corpus))
    if corpus is None:
        return topics.expected()
    if manifest_path(corpus).is_file():
        order = {each.name: place for place, each in enumerate(topics.expected())}
        return tuple(sorted(expected_namespaces(corpus), key=lambda each: order.get(each.name, 0)))
    sizes = read_own_topics(corpus)
    return tuple(Namespace(name=name, topics=sizes[name].topics) for name in sorted(sizes))


def _corpus_here(topics: Topics) -> Path | None:
    """Return the local folder of topics that the servers are to import; None if there is none.

    Raises:
        UsageError: The topics are in an object store.
    """
    corpus = None if topics.corpus is None else placed(Path(topics.corpus))
    if isinstance(corpus, StoredPath):
        raise UsageError(
            f"topics.corpus {corpus}: servers that are started here import files of this machine: "
            "copy the folder here, or name servers that have its topics with --service-url"
        )
    return corpus


@contextmanager
def running_servers(
    document: Document,
    logs: Path,
    files: ServerFiles | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> Iterator[RunningServers]:
    """Start a scenario's servers for a ``with`` block, and stop them at its end.

    Only the servers' logs stay.

    The proxy is stopped before the broker, so the proxy never runs without its broker.

    Args:
        document: The scenario, which states servers and topics.
        logs: The folder to which the logs are written.
        files: An operator's configuration files, with precedence over the scenario's keys.
        say: Called with each step's description.

    Raises:
        LoadgenError: The topics cannot be made, or a server did not start.
    """
    files = files or ServerFiles()
    servers, topics = files.over(document.servers), document.topics
    logs.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        # Beside the logs, which have disk space for a run: /tmp may be in memory.
        temporary = tempfile.TemporaryDirectory(prefix=_PREFIX, dir=logs.parent)
        folder = Path(stack.enter_context(temporary))
        corpus = _corpus_here(topics)
        if topics.made:
            plan = topics.plan()
            say(f"making {plan.topics:,} topics in {plural(plan.namespaces, 'namespace')}")
            parts, here = max(1, plan.topics // _ROWS_PER_FILE), in_this_process(lambda done: None)
            corpus = write_corpus(plan, folder / "topics", parts, here).directory
        say("starting the servers")
        place = str(folder.resolve())
        running: dict[str, RestartableServer] = {}
        for role in servers.roles:
            own: OwnServer = getattr(files, role)
            words = [str(own.file)] if own.file else []
            if role == "broker":
                local = local_broker()
                words += ["--import", str(corpus)] if corpus else []
            else:
                broker = running["broker"].server
                local = local_proxy(broker.service_url, broker.web_url)
            wanted = {"floodgateProfile": servers.profile, **(getattr(servers, role) or {})}
            wanted = {key: value.replace(FOLDER, place) for key, value in wanted.items()}
            launch = ServerLaunch(role, own.over(wanted, local), logs / f"{role}.log", words)
            running[role] = stack.enter_context(restartable_server(launch))
        yield RunningServers(running, known_namespaces(topics, corpus))

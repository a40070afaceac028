"""The servers of a simulation: the real broker and proxy code, on a simulated network."""

from __future__ import annotations

import gc
import logging
from contextlib import AsyncExitStack, ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self
from unittest.mock import patch

from broker.configuration.config import BrokerConfig
from broker.service import BrokerService
from broker.stores.changes import TopicChanges
from limiter.clock import clock_sleep
from loadgen.documents.model import Servers
from loadgen.topics.manifest import namespace_entry
from loadgen.topics.plan import plan_namespaces
from loadgen.topics.rows import namespace_rows
from loadgen.virtual.links.network import HOST
from loadgen.virtual.metadata import take_time
from loadgen.virtual.processor import Processor
from proto.names import NamespaceName
from proxy.config import ProxyConfig
from proxy.service import ProxyService
from server.errors import ConfigError
from server.imports import NO_IMPORTS
from server.module_names import module_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadgen.plan.clients import Namespace
    from loadgen.topics.plan import TopicPlan
    from loadgen.virtual.links.network import Network

BROKER_PORT, PROXY_PORT = 6650, 6651
_LOCAL = {"webServicePort": "8080", "bindAddress": HOST, "advertisedAddress": HOST}
_KEYS = {
    "broker": {
        "brokerServicePort": str(BROKER_PORT),
        "metadataStoreUrl": "memory:local",
        "floodgateMessageStore": "memory",
    },
    "proxy": {
        "servicePort": str(PROXY_PORT),
        "brokerServiceURL": f"pulsar://{HOST}:{BROKER_PORT}",
    },
}
CUT_BY_TIME = (
    "limiter.admission.guarded",
    "broker.messages.unneeded",
    "proto.transport.connection",
    "server.tasks.cooperative",
)
"""Modules that read ``perf_counter`` to end work that takes long."""
_CONFIGS: dict[str, Any] = {"broker": BrokerConfig, "proxy": ProxyConfig}


class VirtualServers:
    """The simulated servers of a scenario, during an ``async with`` block.

    Mutable state: the servers, replaced by a restart.

    Args:
        wanted: The document's servers.
        topics: The broker's topics; None without topics.
        network: The simulated network to listen on.

    Attributes:
        running: The servers that run now, by role.
        namespaces: Namespaces of the broker's topics, with the contents of right listings.
        processors: The processor of each server.
    """

    def __init__(self, wanted: Servers, topics: TopicPlan | None, network: Network) -> None:
        self.running: dict[str, Any] = {}
        self.namespaces: tuple[Namespace, ...] = ()
        self.processors: dict[str, Processor] = {}
        self._wanted = wanted
        self._topics = topics
        self._network = network

    async def __aenter__(self) -> Self:
        try:
            for role in self._wanted.roles:
                await self._start(role)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        async with AsyncExitStack() as exits:  # The proxy ends first.
            for service in self.running.values():
                exits.push_async_exit(service)

    async def restart(self, role: str, moment: float, away_seconds: float) -> None:
        """Kill a server at a moment, as SIGKILL would; start a new one ``away_seconds`` later."""
        await clock_sleep(self._network.clock, moment - self._network.clock.now())
        service = self.running.pop(role)
        for cnx in list(service.connections):
            cnx.abort()
        await service.__aexit__(None)
        await clock_sleep(self._network.clock, away_seconds)
        await self._start(role)

    async def _start(self, role: str) -> None:
        network, loop = self._network, self._network.loop
        processor, config = Processor(loop, self._wanted.service_times), _config(role, self._wanted)
        listen = network.listening(processor)
        service: BrokerService | ProxyService
        if role == "broker":
            service = BrokerService(config, NO_IMPORTS, network.clock, listen)
        else:
            network.dialing = processor
            service = ProxyService(config, network.clock, listen)
        await service.__aenter__()
        self.running[role], self.processors[role] = service, processor
        if isinstance(service, BrokerService):
            if self._topics is not None:
                self.namespaces = await fill(service, self._topics, loop.look)
            take_time(service, processor)


def service_url(servers: Servers) -> str:
    """Return the service URL that clients connect to."""
    port = BROKER_PORT if servers.proxy is None else PROXY_PORT
    return f"pulsar://{HOST}:{port}"


def refusals(role: str, keys: Mapping[str, str]) -> tuple[str, ...]:
    """Return why a server would not start with these configuration keys; empty if it would."""
    try:
        _config(role, Servers(broker=dict(keys), proxy=dict(keys)))
    except ConfigError as error:
        return error.problems
    return ()


def _config(role: str, servers: Servers) -> Any:  # noqa: ANN401 - of the role
    keys = (servers.broker if role == "broker" else servers.proxy) or {}
    own = {**keys, **_KEYS[role], **_LOCAL, "floodgateProfile": servers.profile}
    return _CONFIGS[role].from_properties(own)


async def fill(
    broker: BrokerService, plan: TopicPlan, look: Callable[[], None]
) -> tuple[Namespace, ...]:
    """Add a plan's topics to a broker's store; return its namespaces.

    They have the number and hash of names of correct listings.

    ``look`` may end the work between namespaces.
    """
    found = []
    for namespace in plan_namespaces(plan):
        look()
        names = namespace_rows(plan, namespace).column("topic")
        found.append(namespace_entry(names).expected(namespace.name))
        added = [name.encode() for name in names.to_pylist()]
        await broker.store.apply(NamespaceName.parse(namespace.name), TopicChanges(added=added))
    return tuple(found)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Run a simulation without time limits, logging and garbage collection in a ``with`` block.

    Turns of the servers' work never end by Python's own time, which must not affect virtual time.
    Logging is off, because simulated servers have no log. Garbage collection waits for the end:
    scanning a hundred thousand live connections costs a sixth of a storm's time, and cycles are
    one or two hundredths of the memory.
    """
    with ExitStack() as before:
        before.callback(logging.disable, logging.root.manager.disable)
        logging.disable(logging.CRITICAL)
        if gc.isenabled():
            before.callback(gc.enable)
        before.callback(gc.collect)
        gc.disable()
        for name in CUT_BY_TIME:
            module = import_module(module_name(name))
            before.enter_context(patch.object(module, "perf_counter", lambda: 0.0))
        yield

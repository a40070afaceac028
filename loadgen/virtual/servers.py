"""The servers of a simulation: broker and proxy as they are, on a simulated network."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from broker.configuration.config import BrokerConfig
from broker.service import BrokerService
from broker.stores.changes import TopicChanges
from loadgen.documents.model import Servers
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

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from loadgen.documents.service_times import ServiceTimes
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
_CONFIGS: dict[str, Any] = {"broker": BrokerConfig, "proxy": ProxyConfig}


@asynccontextmanager
async def virtual_servers(
    wanted: Servers, topics: TopicPlan | None, network: Network, times: ServiceTimes
) -> AsyncIterator[dict[str, Any]]:
    """Run a document's servers for a block; hand out broker, and proxy if there is one, by name.

    Args:
        wanted: They.
        topics: Those of the broker; None for none.
        network: Where they listen.
        times: What their work takes.
    """
    loop, clock = network.loop, network.clock
    async with AsyncExitStack() as exits:
        processor = Processor(loop, times)
        listen = network.listening(processor)
        broker = BrokerService(_config("broker", wanted), NO_IMPORTS, clock, listen)
        services: dict[str, Any] = {"broker": await exits.enter_async_context(broker)}
        if topics is not None:
            await fill(broker, topics, loop.look)
        take_time(broker, loop, processor)
        if wanted.proxy is not None:
            network.dialing = Processor(loop, times)
            listen = network.listening(network.dialing)
            proxy = ProxyService(_config("proxy", wanted), clock, listen)
            services["proxy"] = await exits.enter_async_context(proxy)
        yield services


def service_url(servers: Servers) -> str:
    """Return the address that clients connect to."""
    port = BROKER_PORT if servers.proxy is None else PROXY_PORT
    return f"pulsar://{HOST}:{port}"


def refusals(role: str, keys: Mapping[str, str]) -> tuple[str, ...]:
    """Return why a server refuses to start with these keys of its file; empty: it does not."""
    try:
        _config(role, Servers(broker=dict(keys), proxy=dict(keys)))
    except ConfigError as error:
        return error.problems
    return ()


def _config(role: str, servers: Servers) -> Any:  # noqa: ANN401 - of the role
    keys = (servers.broker if role == "broker" else servers.proxy) or {}
    own = {**keys, **_KEYS[role], **_LOCAL, "floodgateProfile": servers.profile}
    return _CONFIGS[role].from_properties(own)


async def fill(broker: BrokerService, plan: TopicPlan, look: Callable[[], None]) -> None:
    """Put topics into a broker's store; ``look`` may end it between namespaces."""
    for namespace in plan_namespaces(plan):
        look()
        names = namespace_rows(plan, namespace).column("topic").to_pylist()
        added = [name.encode() for name in names]
        await broker.store.apply(NamespaceName.parse(namespace.name), TopicChanges(added=added))

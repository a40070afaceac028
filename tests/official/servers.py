"""Floodgate as in production: a broker with a message database, and a proxy."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from loadgen.places.server_process import ServerLaunch, ServerProcess, running_server
from tests.official.runs import Target
from tests.proof.servers import ClusterSettings, Restartable

ANY_TARGET = {
    "brokerProxyAllowedTargetPorts": "*",
    "brokerProxyAllowedIPAddresses": "*",
    "brokerProxyAllowedHostNames": "*",
}
"""Broker port and address are outside the proxy's default permissions."""


@dataclass
class Servers:
    broker: Restartable
    proxy: ServerProcess

    @property
    def direct(self) -> Target:
        """Return the broker's URLs."""
        return Target(self.broker.server.service_url, self.broker.server.web_url)

    @property
    def through_proxy(self) -> Target:
        """Return the broker's URLs by way of the proxy, which forwards REST as well."""
        return Target(self.proxy.service_url, self.proxy.web_url)

    def kill_and_start(self) -> None:
        """Kill the broker with SIGKILL and restart."""
        os.kill(self.broker.server.pid, signal.SIGKILL)
        self.broker.restart()


def _same_ports(settings: ClusterSettings) -> Callable[[int], ServerLaunch]:
    """Keep the first broker's ports in every restart."""
    web_port = free_port()

    def launch(port: int) -> ServerLaunch:
        found = settings.broker_launch(port)
        return replace(found, settings={**found.settings, "webServicePort": str(web_port)})

    return launch


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


@contextmanager
def floodgate(profile: str, folder: Path) -> Iterator[Servers]:
    """Run both servers for a block, with stores that outlive a broker."""
    folder = folder.resolve()
    settings = ClusterSettings(
        logs=folder,
        both={"floodgateProfile": profile},
        broker={
            "floodgateMessageStore": f"sqlite://{folder / 'messages.db'}",
            "floodgateMetadataStoreUrl": f"sqlite:///{folder / 'topics.sqlite'}",
        },
    )
    with ExitStack() as stack:
        broker = Restartable(stack, _same_ports(settings))
        launch = settings.proxy_launch(broker.server)
        launch.settings.update(ANY_TARGET)
        yield Servers(broker, stack.enter_context(running_server(launch)))

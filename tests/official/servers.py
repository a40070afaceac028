"""Floodgate as its users run it: a broker with messages in a database, and a proxy in front."""

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
"""The broker is on a port and an address that the proxy, as shipped, refuses to connect to."""


@dataclass
class Servers:
    """The running servers."""

    broker: Restartable
    proxy: ServerProcess

    @property
    def direct(self) -> Target:
        """The broker itself."""
        return Target(self.broker.server.service_url, self.broker.server.web_url)

    @property
    def through_proxy(self) -> Target:
        """The broker by way of the proxy, which forwards REST as well."""
        return Target(self.proxy.service_url, self.proxy.web_url)

    def kill_and_start(self) -> None:
        """End the broker with SIGKILL and start it again."""
        os.kill(self.broker.server.pid, signal.SIGKILL)
        self.broker.restart()


def _same_ports(settings: ClusterSettings) -> Callable[[int], ServerLaunch]:
    """Have every life of a broker on the ports of the first."""
    web_port = free_port()

    def launch(port: int) -> ServerLaunch:
        found = settings.broker_launch(port)
        return replace(found, settings={**found.settings, "webServicePort": str(web_port)})

    return launch


def free_port() -> int:
    """Return a port that nobody listens on now."""
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

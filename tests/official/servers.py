"""Floodgate as in production: a broker with a message database, and a proxy."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from loadgen.places.server_process import (
    RestartableServer,
    ServerProcess,
    restartable_server,
    running_server,
)
from tests.official.runs import Target
from tests.proof.servers import ClusterSettings

ANY_TARGET = {
    "brokerProxyAllowedTargetPorts": "*",
    "brokerProxyAllowedIPAddresses": "*",
    "brokerProxyAllowedHostNames": "*",
}
"""Broker port and address are outside the proxy's default permissions."""


@dataclass
class Servers:
    broker: RestartableServer
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
        """Kill the broker with SIGKILL and restart it on the same ports."""
        self.broker.restart()


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
        broker = stack.enter_context(restartable_server(settings.broker_launch()))
        launch = settings.proxy_launch(broker.server)
        launch.settings.update(ANY_TARGET)
        yield Servers(broker, stack.enter_context(running_server(launch)))

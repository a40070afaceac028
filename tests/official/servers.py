"""Floodgate as its users run it: a broker with a log store, and a proxy in front of it."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.servers.processes import running_server
from tests.official.runs import Target
from tests.proof.servers import ClusterSettings, Restartable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
    proxy_url: str

    @property
    def direct(self) -> Target:
        """The broker itself."""
        return Target(self.broker.server.service_url, self.broker.server.web_url)

    @property
    def through_proxy(self) -> Target:
        """The broker by way of the proxy."""
        return Target(self.proxy_url, self.broker.server.web_url)

    def kill_and_start(self) -> None:
        """End the broker with SIGKILL and start it again."""
        os.kill(self.broker.server.pid, signal.SIGKILL)
        self.broker.restart()


@contextmanager
def floodgate(profile: str, folder: Path) -> Iterator[Servers]:
    """Run both servers for a block, with stores that outlive a broker."""
    folder = folder.resolve()
    settings = ClusterSettings(
        logs=folder,
        both={"floodgateProfile": profile},
        broker={
            "floodgateMessageStore": f"log://{folder / 'messages'}",
            "floodgateMetadataStoreUrl": f"sqlite:///{folder / 'topics.sqlite'}",
        },
    )
    with ExitStack() as stack:
        broker = Restartable(stack, settings.broker_launch)
        launch = settings.proxy_launch(broker.server)
        launch.settings.update(ANY_TARGET)
        proxy = stack.enter_context(running_server(launch))
        yield Servers(broker, proxy.service_url)

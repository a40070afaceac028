"""Two brokers on one database, and two proxies before them, all restartable."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from loadgen.places.server_process import ServerLaunch
from tests.proof.servers import LOCAL, Restartable

LEASE_MILLIS = 4000


@dataclass(frozen=True)
class Fleet:
    """The processes by name: broker-1, broker-2, proxy-1, proxy-2."""

    processes: dict[str, Restartable]

    def url(self, role: str) -> str:
        """Return the service URL with both addresses of a role."""
        addresses = [
            "{}:{}".format(*process.address)
            for name, process in self.processes.items()
            if name.startswith(role)
        ]
        return f"pulsar://{','.join(addresses)}"


@contextmanager
def running_fleet(out: Path, database: str) -> Iterator[Fleet]:
    """Run the four for a block; their messages are in logs below ``out``."""
    for messages in out.glob("messages-*"):
        shutil.rmtree(messages)
    fleet = Fleet({})
    with ExitStack() as stack:
        for name in ("broker-1", "broker-2"):
            settings = {
                **LOCAL,
                "metadataStoreUrl": database,
                "metadataStoreSessionTimeoutMillis": str(LEASE_MILLIS),
                "floodgateMessageStore": f"sqlite://{(out / f'messages-{name}.db').resolve()}",
            }
            launch = partial(_launch, "broker", "brokerServicePort", settings, out / f"{name}.log")
            fleet.processes[name] = Restartable(stack, launch)
        brokers = fleet.url("broker")
        for name in ("proxy-1", "proxy-2"):
            settings = {
                **LOCAL,
                "brokerServiceURL": brokers,
                "brokerProxyAllowedTargetPorts": "*",
            }
            launch = partial(_launch, "proxy", "servicePort", settings, out / f"{name}.log")
            fleet.processes[name] = Restartable(stack, launch)
        yield fleet


def _launch(
    module: str, port_key: str, settings: dict[str, str], log: Path, port: int
) -> ServerLaunch:
    launch = ServerLaunch(module, settings, log)
    return replace(launch, settings={**settings, port_key: str(port)})

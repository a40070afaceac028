"""Two brokers on one database, and two proxies before them, all restartable."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from loadgen.places.server_process import RestartableServer, ServerLaunch, restartable_server
from tests.proof.servers import LOCAL

LEASE_MILLIS = 4000


@dataclass(frozen=True)
class Fleet:
    """The processes by name: broker-1, broker-2, proxy-1, proxy-2."""

    processes: dict[str, RestartableServer]

    def url(self, role: str) -> str:
        """Return the service URL with both addresses of a role."""
        addresses = [
            process.server.service_url.removeprefix("pulsar://")
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
                "brokerServicePort": "0",
                "metadataStoreUrl": database,
                "metadataStoreSessionTimeoutMillis": str(LEASE_MILLIS),
                "floodgateMessageStore": f"sqlite://{(out / f'messages-{name}.db').resolve()}",
            }
            launch = ServerLaunch("broker", settings, out / f"{name}.log")
            fleet.processes[name] = stack.enter_context(restartable_server(launch))
        brokers = fleet.url("broker")
        for name in ("proxy-1", "proxy-2"):
            settings = {
                **LOCAL,
                "servicePort": "0",
                "brokerServiceURL": brokers,
                "brokerProxyAllowedTargetPorts": "*",
            }
            launch = ServerLaunch("proxy", settings, out / f"{name}.log")
            fleet.processes[name] = stack.enter_context(restartable_server(launch))
        yield fleet

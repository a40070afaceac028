"""Replay targets: Floodgate's processes, or named servers.

``FLOODGATE_GOLDEN_BROKER=host:port`` names another broker's binary port, for example a real
Pulsar's, to prove the replay fair; ``FLOODGATE_GOLDEN_WEB=host:port`` its web port, and
``FLOODGATE_GOLDEN_PROXY=host:port`` a proxy in front. Nothing is started then, and deviations do
not apply.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.golden.exchange import Rest
from tests.support.golden.rest import ask
from tests.support.processes.server_process import running_server

FOREIGN_BROKER = os.environ.get("FLOODGATE_GOLDEN_BROKER", "")
FOREIGN_WEB = os.environ.get("FLOODGATE_GOLDEN_WEB", "")
FOREIGN_PROXY = os.environ.get("FLOODGATE_GOLDEN_PROXY", "")

LOCAL_NAMES = (
    "alpha-1",
    "alpha-2",
    "beta-1",
    "gamma.x",
    *(f"parted-partition-{n}" for n in range(3)),
)
"""Topics of ``public/gold``, needed by every exchange."""
LOOKED_UP = 40
"""Number of names that covers all four bundles of a namespace."""
MESSAGING_NAMES = tuple(f"parted-partition-{n}" for n in range(3))
"""Topics of ``public/msg``, for exchanges about messages."""
_AS_RECORDED = {
    "floodgateProfile": "pulsar",
    "bindAddress": "127.0.0.1",
    "webServicePort": "0",
}
BROKER_AS_RECORDED = {
    **_AS_RECORDED,
    "brokerServicePort": "0",
    "brokerDeleteInactiveTopicsEnabled": "false",
    # Java has no limit, and the machine may be busy.
    "floodgatePatternTimeoutMs": "60000",
    # A standalone broker has a single bookie.
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerDefaultAckQuorum": "1",
    "metadataStoreUrl": "memory:local",
    "advertisedAddress": "127.0.0.1",
    "clusterName": "standalone",
}
"""Keys of a broker equivalent to the recorded one."""


@dataclass(frozen=True)
class Target:
    """A replay target; addresses are ``host:port``, empty if absent."""

    address: str
    web: str = ""


@contextmanager
def golden_broker(folder: Path) -> Iterator[Target]:
    """Run a broker like the recorded one: profile pulsar, and ``public/gold``."""
    if FOREIGN_BROKER:
        yield Target(FOREIGN_BROKER, FOREIGN_WEB)
        return
    names = folder / "topics.txt"
    topics = [f"gold/{name}" for name in LOCAL_NAMES] + [f"msg/{name}" for name in MESSAGING_NAMES]
    names.write_text("".join(f"persistent://public/{name}\n" for name in topics))
    command = ["-m", "broker", *_set(BROKER_AS_RECORDED), "--import", str(names)]
    with running_server(command, folder / "broker.log") as server:
        yield Target(server.address, server.web_url.removeprefix("http://"))


def prepare_namespace(broker: Target, namespace: str) -> None:
    """Make a namespace of one bundle and look it up, so that the broker serves it."""
    made = ask(
        broker.web,
        Rest("PUT", f"/admin/v2/namespaces/{namespace}", '{"bundles":{"numBundles":1}}', 204),
    )
    assert made.status in (204, 409), made
    look_up(broker, namespace)


def look_up(broker: Target, namespace: str) -> None:
    """Look up topics until every bundle of a namespace is served by the broker."""
    look_up_at(broker.web, namespace)


def look_up_at(web: str, namespace: str) -> None:
    """Look up topics of a namespace at ``host:port`` of a broker's web port."""
    for number in range(LOOKED_UP):
        path = f"/lookup/v2/topic/persistent/{namespace}/looked-up-{number}"
        assert ask(web, Rest("GET", path, None, 200)).status == 200


@contextmanager
def golden_proxy(folder: Path, broker: Target) -> Iterator[Target]:
    """Run a proxy in front of the broker, with tunnels to it."""
    if FOREIGN_BROKER or FOREIGN_PROXY:
        yield Target(FOREIGN_PROXY)
        return
    keys = {
        **_AS_RECORDED,
        "servicePort": "0",
        "brokerServiceURL": f"pulsar://{broker.address}",
        "brokerWebServiceURL": f"http://{broker.web}",
        "brokerProxyAllowedTargetPorts": "*",
    }
    command = ["-m", "proxy", *_set(keys)]
    with running_server(command, folder / "proxy.log") as server:
        yield Target(server.address, server.web_url.removeprefix("http://"))


def _set(keys: Mapping[str, str]) -> list[str]:
    return [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]

"""The settings with which a cluster's servers are started on the loopback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.documents.server_keys import FOLDER
from loadgen.own_servers.local import local_broker, local_proxy
from loadgen.own_servers.operator_files import OwnServer
from loadgen.servers.processes import ServerLaunch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadgen.cluster import ClusterPlan
    from loadgen.servers.processes import ServerProcess

BROKER, PROXY = OwnServer("broker"), OwnServer("proxy")


@dataclass(frozen=True)
class ServerFiles:
    """Configuration files of an operator, whose keys stand over those of a scenario's cluster.

    Attributes:
        broker: That of ``--broker-conf``.
        proxy: That of ``--proxy-conf``; with one there is a proxy.
    """

    broker: OwnServer = BROKER
    proxy: OwnServer = PROXY

    def has_proxy(self, cluster: ClusterPlan) -> bool:
        """Tell whether clients reach the broker through a proxy."""
        return cluster.proxy is not None or self.proxy.file is not None

    def over(self, cluster: ClusterPlan) -> ClusterPlan:
        """Return a cluster with the keys of the files instead of its own."""
        keys: dict[str, dict[str, str]] = {"broker": {**cluster.broker, **self.broker.keys}}
        if self.has_proxy(cluster):
            keys["proxy"] = {**(cluster.proxy or {}), **self.proxy.keys}
        return cluster.model_copy(update=keys)


def broker_launch(
    cluster: ClusterPlan, files: ServerFiles, folder: Path, log: Path, arguments: Sequence[str] = ()
) -> ServerLaunch:
    """Return how a cluster's broker is started."""
    settings = _settings(files.broker, cluster.profile, cluster.broker, folder, local_broker())
    return ServerLaunch("broker", settings, log, (*files.broker.arguments, *arguments))


def proxy_launch(
    cluster: ClusterPlan, files: ServerFiles, folder: Path, log: Path, broker: ServerProcess
) -> ServerLaunch:
    """Return how the proxy before a cluster's broker is started."""
    local = local_proxy(broker.service_url, broker.web_url)
    settings = _settings(files.proxy, cluster.profile, cluster.proxy or {}, folder, local)
    return ServerLaunch("proxy", settings, log, files.proxy.arguments)


def _settings(
    own: OwnServer, profile: str, keys: Mapping[str, str], folder: Path, local: Mapping[str, str]
) -> dict[str, str]:
    place = str(folder.resolve())
    wanted = {"floodgateProfile": profile, **keys}
    return own.over({key: value.replace(FOLDER, place) for key, value in wanted.items()}, local)

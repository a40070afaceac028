"""The servers of one run of the demo: how they are launched, its own or an operator's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.demo.plan import broker_settings, local_broker, local_proxy, proxy_settings
from loadgen.servers.processes import ServerLaunch

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.demo.own_cluster import OwnCluster
    from loadgen.demo.plan import DemoRun
    from loadgen.demo.topics import DemoTopics
    from loadgen.servers.processes import ServerProcess


def broker_launch(
    run: DemoRun, own: OwnCluster | None, logs: Path, topics: DemoTopics
) -> ServerLaunch:
    """Return how to start the broker of a run; it imports the topics before it is ready."""
    importing, log = topics.import_arguments, logs / "broker.log"
    if own is None:
        return ServerLaunch("broker", broker_settings(run), log, importing)
    settings = own.broker.settings(run, local_broker())
    return ServerLaunch("broker", settings, log, (*own.broker.arguments, *importing))


def proxy_launch(
    run: DemoRun, own: OwnCluster | None, logs: Path, broker: ServerProcess
) -> ServerLaunch | None:
    """Return how to start the proxy of a run; None where an operator has none."""
    log = logs / "proxy.log"
    if own is None:
        return ServerLaunch("proxy", proxy_settings(run, broker), log)
    if own.proxy is None:
        return None
    settings = own.proxy.settings(run, local_proxy(broker.service_url, broker.web_url))
    return ServerLaunch("proxy", settings, log, own.proxy.arguments)

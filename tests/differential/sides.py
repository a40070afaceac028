"""Both servers: a real Pulsar named by the environment, and a Floodgate started here."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.differential.player import Side
from tests.support.processes.server_process import running_server

ENVIRONMENT = ("PULSAR_SERVICE_URL", "PULSAR_WEB_URL")
PROXY_ENVIRONMENT = "PULSAR_PROXY_URL"
NO_REAL_PULSAR = (
    "No real Pulsar to play to: PULSAR_SERVICE_URL and PULSAR_WEB_URL name one "
    "(and PULSAR_PROXY_URL a proxy in front of it)."
)
_SHIPPED_PORTS = ("6650", "6651")
_AS_SHIPPED = ["--set", "floodgateProfile=pulsar", "--set", "bindAddress=127.0.0.1"]
_AS_SHIPPED += ["--set", "webServicePort=0"]


def real_side(label: str, *, through_proxy: bool) -> Side | None:
    """Return the real server; None if the environment names no server."""
    names = [*ENVIRONMENT, PROXY_ENVIRONMENT] if through_proxy else [*ENVIRONMENT]
    urls = [os.environ.get(name, "").partition("://")[2].rstrip("/") for name in names]
    if not all(urls):
        return None
    broker, web, *proxy = urls
    return Side(proxy[0] if proxy else broker, broker, web, label)


@contextmanager
def floodgate_side(label: str, folder: Path, *, through_proxy: bool) -> Iterator[Side]:
    """Run Floodgate's broker, and proxy on request, in profile pulsar."""
    command = ["-m", "broker", *_AS_SHIPPED, "--set", "brokerServicePort=0"]
    command += ["--set", "metadataStoreUrl=memory:local", "--set", "advertisedAddress=127.0.0.1"]
    command += ["--set", "clusterName=standalone"]
    # As on the real server: otherwise unused topics vanish during the run.
    command += ["--set", "brokerDeleteInactiveTopicsEnabled=false"]
    with running_server(command, folder / "broker.log") as broker:
        web = broker.web_url.removeprefix("http://")
        if not through_proxy:
            yield Side(broker.address, broker.address, web, label)
            return
        command = ["-m", "proxy", *_AS_SHIPPED, "--set", "servicePort=0"]
        command += ["--set", f"brokerServiceURL={broker.service_url}"]
        command += ["--set", f"brokerWebServiceURL={broker.web_url}"]
        command += ["--set", f"brokerProxyAllowedTargetPorts={_target_ports(broker.address)}"]
        with running_server(command, folder / "proxy.log") as proxy:
            yield Side(proxy.address, broker.address, web, label)


def _target_ports(ours: str) -> str:
    """Return the ports that the proxy may connect to on a CONNECT's request, as a real proxy's
    default.
    """
    real = os.environ[ENVIRONMENT[0]].rstrip("/").rpartition(":")[2]
    allowed = (
        [*_SHIPPED_PORTS, ours.rpartition(":")[2]] if real in _SHIPPED_PORTS else _SHIPPED_PORTS
    )
    return ",".join(allowed)

"""Each action of a fault at a Floodgate proxy before a real Pulsar, beneath the official clients.

The applications' results are those of the table, as before Floodgate's own broker; a real broker
alone moves topics, so the proxy refuses that action.
"""

import os
import urllib.error
from typing import Any

import pulsar

from loadgen.places.server_process import ServerLaunch, running_server
from tests.official.servers import ANY_TARGET
from tests.proof.faults.actions import CASES
from tests.proof.faults.beside_clients import FAULTS, ON, play
from tests.proof.real_broker import COMMAND, real_broker
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import LOCAL, check_logs, rest
from tests.support.processes.free_port import free_port


def prove(options: ProofOptions) -> ProofResult:
    """Run each fault of a proxy beneath each client; skip without a real broker."""
    result = ProofResult()
    if COMMAND not in os.environ:
        said = f"not before a real Pulsar: {COMMAND} names no command that starts one"
        result.check("a real broker", True, said)
        return result
    options.out.mkdir(parents=True, exist_ok=True)
    ports = {"brokerServicePort": str(free_port()), "webServicePort": str(free_port())}
    urls = {
        "brokerServiceURL": f"pulsar://127.0.0.1:{ports['brokerServicePort']}",
        "brokerWebServiceURL": f"http://127.0.0.1:{ports['webServicePort']}",
    }
    keys = {"servicePort": "0", **urls, **LOCAL, **ON, **ANY_TARGET}
    launch = ServerLaunch("proxy", keys, options.out / "proxy.log")
    with real_broker(ports), running_server(launch) as proxy:
        _first_topic(proxy.service_url)
        play(proxy, urls["brokerWebServiceURL"], options, result)
        for name, case in CASES.items():
            if not case.at_proxy:
                _refused(proxy.web_url, name, case.document, result)
    check_logs(options.out, result)
    return result


def _first_topic(url: str) -> None:
    """Load a topic: a new broker's first takes longer than the clients' patience."""
    client = pulsar.Client(url, operation_timeout_seconds=60)
    client.create_producer("persistent://public/default/first").send(b"")
    client.close()


def _refused(url: str, name: str, document: dict[str, Any], result: ProofResult) -> None:
    try:
        rest(url, "POST", FAULTS, document)
        said = "set"
    except urllib.error.HTTPError as error:
        said = f"refused with {error.code}"
    result.check(name, said == "refused with 412", f"{name} at the proxy: {said}")

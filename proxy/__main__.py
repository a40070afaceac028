"""The proxy's command line: ``python -m proxy`` and ``floodgate-proxy``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.config import ProxyConfig, known_keys
from server.command_line import Program, run_program
from server.lifecycle import drain_on_signals, ready_line

if TYPE_CHECKING:
    from server.imports import Imports


async def serve(config: ProxyConfig, _: Imports) -> int:
    """Run a proxy until a signal requests its shutdown; return the exit status."""
    from proxy.service import ProxyService

    with drain_on_signals() as drain:
        async with ProxyService(config) as proxy:
            if not drain.is_set():
                ready_line("proxy", *proxy.urls.told())
            await drain.wait()
    return 0


PROGRAM = Program(
    role="proxy",
    summary="Run a Floodgate proxy in front of Pulsar or Floodgate brokers: it answers lookups and "
    "topic lists under the memory limits of PIP-442, and forwards producers, consumers and admin "
    "REST. Prints READY and the addresses when clients can connect. Ctrl-C stops the proxy.",
    examples=(
        "# In front of a broker on this machine\n"
        "floodgate-proxy --set brokerServiceURL=pulsar://127.0.0.1:6650 \\\n"
        "  --set brokerWebServiceURL=http://127.0.0.1:8080 \\\n"
        "  --set servicePort=6651 --set webServicePort=8081",
        "# Your configuration, and the behaviour of Pulsar 4.2.4, faults included\n"
        "floodgate-proxy proxy.conf --set floodgateProfile=pulsar",
    ),
    known_keys=known_keys,
    configure=ProxyConfig.from_properties,
    serve=serve,
)


def main() -> None:
    """Run the proxy's command-line program."""
    run_program(PROGRAM)


if __name__ == "__main__":
    main()

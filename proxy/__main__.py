"""``python -m proxy`` and ``floodgate-proxy``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.config import ProxyConfig, known_keys
from server.command_line import Program, application
from server.lifecycle import drain_on_signals, ready_line

if TYPE_CHECKING:
    from server.imports import Imports


async def serve(config: ProxyConfig, _: Imports) -> int:
    """Serve until a signal asks for the drain; return the exit status."""
    from proxy.service import ProxyService

    with drain_on_signals() as drain:
        async with ProxyService(config) as proxy:
            if not drain.is_set():
                ready_line("proxy", *proxy.urls.told())
            await drain.wait()
    return 0


PROGRAM = Program(
    role="proxy",
    summary="A proxy for Pulsar brokers: lookups and topic lists under the memory limits of "
    "PIP-442, pipes for producers and consumers, and admin requests.",
    examples=(
        "floodgate-proxy --set brokerServiceURL=pulsar://127.0.0.1:6650 --set servicePort=6651",
        "floodgate-proxy proxy.conf --set floodgateProfile=pulsar",
    ),
    known_keys=known_keys,
    configure=ProxyConfig.from_properties,
    serve=serve,
)


def main() -> None:
    """Run the proxy."""
    application(PROGRAM)()


if __name__ == "__main__":
    main()

"""``python -m broker`` and ``floodgate-broker``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.config import BrokerConfig
from server.command_line import Program, application
from server.lifecycle import drain_on_signals, ready_line

if TYPE_CHECKING:
    from pathlib import Path


async def serve(config: BrokerConfig, imports: tuple[Path, ...]) -> int:
    """Serve until a signal asks for the drain; return the exit status."""
    from broker.service import BrokerService

    with drain_on_signals() as drain:
        async with BrokerService(config, imports) as broker:
            if not drain.is_set():
                ready_line("broker", broker.service_url, broker.web_service_url)
            await drain.wait()
    return 0


PROGRAM = Program(
    role="broker",
    summary="A broker that speaks Apache Pulsar's binary protocol and lists topics under the "
    "memory limits of PIP-442.",
    examples=(
        "floodgate-broker",
        "floodgate-broker broker.conf --set floodgateProfile=pulsar",
        "floodgate-broker --import topics.txt --set maxTopicListInFlightHeapMemSizeMB=50",
    ),
    configure=BrokerConfig.from_properties,
    serve=serve,
    imports=True,
)


def main() -> None:
    """Run the broker."""
    application(PROGRAM)()


if __name__ == "__main__":
    main()

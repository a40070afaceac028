"""The broker's command line: ``python -m broker`` and ``floodgate-broker``."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, NoReturn

from broker.configuration.config import BrokerConfig, known_keys
from server.command_line import Program, run_program
from server.lifecycle import drain_on_signals, ready_line

if TYPE_CHECKING:
    from server.imports import Imports

logger = logging.getLogger(__name__)


async def serve(config: BrokerConfig, imports: Imports) -> int:
    """Run a broker until a signal requests its shutdown; return the process's exit status."""
    from broker.service import BrokerService

    with drain_on_signals() as drain:
        async with BrokerService(config, imports) as broker:
            if not drain.is_set():
                ready_line("broker", *broker.urls.told())
            await drain.wait()
    if broker.overdue_calls:
        _end_at_once(broker.overdue_calls)
    return 0


def _end_at_once(overdue_calls: int) -> NoReturn:
    """Exit the process at once, as a normal exit would wait for plug-in calls that still run."""
    logger.error("exiting although %d calls of the plug-in have not ended", overdue_calls)
    logging.shutdown()
    os._exit(0)


PROGRAM = Program(
    role="broker",
    summary="Run a Floodgate broker: one process that serves Apache Pulsar's clients with "
    "messages, schemas, and topic lists under the memory limits of PIP-442. Prints READY and the "
    "addresses when clients can connect (port 6650, admin REST on 8080, on this machine only). "
    "Ctrl-C stops the broker.",
    examples=(
        "# A broker with the default configuration\nfloodgate-broker",
        "# Free ports, which the READY line names\n"
        "floodgate-broker --set brokerServicePort=0 --set webServicePort=0",
        "# Your configuration, and the behaviour of Pulsar 4.2.4, faults included\n"
        "floodgate-broker broker.conf --set floodgateProfile=pulsar",
        "# Your topics, and 50 MB of heap for topic lists\n"
        "floodgate-broker --import topics.txt \\\n"
        "  --set maxTopicListInFlightHeapMemSizeMB=50",
    ),
    known_keys=known_keys,
    configure=BrokerConfig.from_properties,
    serve=serve,
    imports=True,
)


def main() -> None:
    """Run the broker's command-line program."""
    run_program(PROGRAM)


if __name__ == "__main__":
    main()

"""``python -m broker`` and ``floodgate-broker``."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, NoReturn

from broker.configuration.config import BrokerConfig, known_keys
from server.command_line import Program, application
from server.lifecycle import drain_on_signals, ready_line

if TYPE_CHECKING:
    from server.imports import Imports

logger = logging.getLogger(__name__)


async def serve(config: BrokerConfig, imports: Imports) -> int:
    """Serve until a signal asks for the drain; return the exit status."""
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
    """End beside calls of a plug-in that never do: the event loop would wait for them."""
    logger.error("%d calls of the plug-in do not end; the process ends without them", overdue_calls)
    logging.shutdown()
    os._exit(0)


PROGRAM = Program(
    role="broker",
    summary="A broker for Apache Pulsar's clients: messages, schemas, and topic lists under the "
    "memory limits of PIP-442.",
    examples=(
        "floodgate-broker",
        "floodgate-broker --set brokerServicePort=0 --set webServicePort=0",
        "floodgate-broker broker.conf --set floodgateProfile=pulsar",
        "floodgate-broker --import topics.txt --set maxTopicListInFlightHeapMemSizeMB=50",
    ),
    known_keys=known_keys,
    configure=BrokerConfig.from_properties,
    serve=serve,
    imports=True,
)


def main() -> None:
    """Run the broker."""
    application(PROGRAM)()


if __name__ == "__main__":
    main()

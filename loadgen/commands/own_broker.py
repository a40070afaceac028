"""A broker for a run that names none: on the loopback, with its messages in a log, gone with it."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.demo.plan import local_broker
from loadgen.servers.processes import ServerLaunch, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadgen.run.options import RunOptions
    from loadgen.scenario import Scenario

UNBOUNDED = {"floodgateMessageStoreMaxMB": "0"}
"""The size of a backlog is its user's to say."""


@contextmanager
def broker_for(scenario: Scenario, options: RunOptions) -> Iterator[tuple[Scenario, RunOptions]]:
    """Start a broker unless the scenario has an address, and return both with what is known of it.

    Raises:
        ServerStartError: It did not start.
    """
    if scenario.service_url:
        yield scenario, options
        return
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".broker-", dir=options.out) as folder:
        store = {"floodgateMessageStore": f"log://{Path(folder).resolve()}/messages", **UNBOUNDED}
        log = Path(folder) / "broker.log"
        with running_server(ServerLaunch("broker", {**local_broker(), **store}, log)) as broker:
            yield (
                scenario.model_copy(update={"service_url": broker.service_url}),
                replace(options, broker_admin_url=broker.web_url, broker_pid=broker.pid),
            )

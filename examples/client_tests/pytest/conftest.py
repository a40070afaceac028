"""A pytest fixture: a client of the broker that Floodgate's pytest plug-in runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulsar
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsar_floodgate.pytest_plugin import FloodgateServer

pytest_plugins = ["pulsar_floodgate.pytest_plugin"]


@pytest.fixture
def client(floodgate_broker: FloodgateServer) -> Iterator[pulsar.Client]:
    """Yield a client of an empty broker; close the client after the test."""
    quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(floodgate_broker.service_url, operation_timeout_seconds=2, logger=quiet)
    yield client
    client.close()

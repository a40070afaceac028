"""Tests that a program would write with the plug-in; run in its environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pulsar_floodgate.pytest_plugin import FloodgateServer

TOPIC = "/admin/v2/persistent/public/default"


PIDS: dict[str, int] = {}
"""Of the processes shared by all tests of a pytest-xdist worker."""


@pytest.mark.parametrize("number", range(3))
def test_each_test_has_the_same_broker_without_topics(
    floodgate_broker: FloodgateServer, number: int
) -> None:
    assert floodgate_broker.ask("GET", TOPIC) == b"[]"
    assert floodgate_broker.faults() == []
    floodgate_broker.ask("PUT", f"{TOPIC}/of-{number}")
    floodgate_broker.set_fault({"on": ["SEND"], "do": {"action": "drop"}})
    assert b"of-" in floodgate_broker.ask("GET", TOPIC)
    assert PIDS.setdefault("broker", floodgate_broker.pid) == floodgate_broker.pid


@pytest.mark.parametrize("number", range(2))
def test_each_test_has_the_same_proxy_without_faults(
    floodgate_proxy: FloodgateServer, floodgate_broker: FloodgateServer, number: int
) -> None:
    assert floodgate_proxy.ask("GET", TOPIC) == b"[]"
    assert floodgate_proxy.faults() == []
    floodgate_proxy.set_fault({"on": ["LOOKUP"], "do": {"action": "drop"}})
    assert PIDS.setdefault("proxy", floodgate_proxy.pid) == floodgate_proxy.pid

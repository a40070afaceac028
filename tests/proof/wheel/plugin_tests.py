"""Tests that a program would write with the plug-in; run in its own environment."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from floodgate_pytest import FloodgateServer

TOPIC = "/admin/v2/persistent/public/default"


@pytest.mark.parametrize("number", range(3))
def test_each_test_has_a_broker_without_topics(
    floodgate_broker: FloodgateServer, number: int
) -> None:
    assert ask(floodgate_broker, TOPIC) == b"[]"
    ask(floodgate_broker, f"{TOPIC}/of-{number}", "PUT")
    assert b"of-" in ask(floodgate_broker, TOPIC)


def test_a_proxy_forwards_to_the_broker(
    floodgate_proxy: FloodgateServer, floodgate_broker: FloodgateServer
) -> None:
    assert floodgate_proxy.service_url != floodgate_broker.service_url
    assert ask(floodgate_proxy, TOPIC) == b"[]"


def ask(server: FloodgateServer, path: str, method: str = "GET") -> bytes:
    """Ask a server's REST API."""
    request = urllib.request.Request(server.web_url + path, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        body: bytes = answer.read()
        return body

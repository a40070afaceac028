"""Excess connections are refused in a real broker's words, until a connection closes."""

import json
from pathlib import Path

import pytest

from server.limits.connections import ConnectionBounds, ConnectionLimits, Limit, Refusals

RECORDED = Path(__file__).parents[3] / "data" / "limits.jsonl"
TOO_MANY = "Reached the maximum number of connections"


def test_connections_are_refused_as_recorded() -> None:
    # Recorded with tools/record_limits.py.
    lines = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    cases = [line for line in lines if line["case"].startswith("connection")]
    limits = ConnectionLimits(ConnectionBounds(most=15, most_of_address=8))
    for case in cases:
        peer = f"{case['case'].split()[-1]}:4711"
        words = limits.opened(peer)
        if words is not None:
            limits.ended(peer)
        said = case.get("message")
        assert words == (said and said.replace("CLIENT", peer)), case
    assert len(cases) == 17


def test_a_connection_beyond_the_limit_is_refused_until_enough_connections_are_closed() -> None:
    limits = ConnectionLimits(ConnectionBounds(most=2))
    first = [limits.opened(f"10.0.0.{host}:1") for host in range(3)]
    limits.ended("10.0.0.0:1")
    # The refused connection still holds a socket.
    second = limits.opened("10.0.0.3:1")
    limits.ended("10.0.0.3:1")
    limits.ended("10.0.0.2:1")
    assert first == [None, None, TOO_MANY]
    assert second == TOO_MANY
    assert limits.opened("10.0.0.4:1") is None


@pytest.mark.parametrize("address", ["127.0.0.1", "[::1]"])
def test_each_address_has_its_own_limit_and_the_refusal_names_the_client(address: str) -> None:
    refusals = Refusals()
    limits = ConnectionLimits(ConnectionBounds(most_of_address=1), refusals)
    found = [
        limits.opened(f"{address}:1"),
        limits.opened(f"{address}:2"),
        limits.opened("10.0.0.9:3"),
    ]
    assert found == [None, f"{TOO_MANY} on address/{address}:2", None]
    assert refusals.counts[Limit.CONNECTIONS_OF_ADDRESS] == 1
    assert refusals.counts[Limit.CONNECTIONS] == 0


def test_addresses_without_connections_are_forgotten() -> None:
    limits = ConnectionLimits(ConnectionBounds(1, 1))
    peers = [f"10.0.0.{host}:7" for host in range(5)]
    for peer in peers:
        limits.opened(peer)
    for peer in peers:
        limits.ended(peer)
    assert limits.by_address == {}

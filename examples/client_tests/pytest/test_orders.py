"""Tests of a program that uses Pulsar: messages, topics found by a pattern, a simulated fault."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pulsar

if TYPE_CHECKING:
    from pulsar_floodgate.pytest_plugin import FloodgateServer

REFUSED_ONCE = {
    "on": ["SUBSCRIBE"],
    "when": {"times": 1},
    "do": {"action": "error", "error": "ServiceNotReady"},
}


def test_an_order_arrives(client: pulsar.Client) -> None:
    consumer = client.subscribe("orders", "billing")
    client.create_producer("orders").send(b"two teas")
    message = consumer.receive(5_000)
    consumer.acknowledge(message)
    assert message.data() == b"two teas"


def test_orders_of_all_countries_are_found(client: pulsar.Client) -> None:
    for topic in ("orders-eu", "orders-us", "invoices-eu"):
        client.create_producer(topic).send(topic.encode())
    consumer = client.subscribe(
        re.compile("persistent://public/default/orders-.*"),
        "billing",
        initial_position=pulsar.InitialPosition.Earliest,
    )
    found = {consumer.receive(5_000).data() for _ in range(2)}
    assert found == {b"orders-eu", b"orders-us"}


def test_a_refused_subscription_is_tried_again(
    client: pulsar.Client, floodgate_broker: FloodgateServer
) -> None:
    floodgate_broker.set_fault(REFUSED_ONCE)
    consumer = subscribed(client)
    client.create_producer("orders").send(b"one tea")
    assert consumer.receive(5_000).data() == b"one tea"
    (fault,) = floodgate_broker.faults()
    assert fault["fired"] == 1


def test_an_order_comes_an_hour_later(
    client: pulsar.Client, floodgate_broker: FloodgateServer
) -> None:
    consumer = client.subscribe("orders", "billing", pulsar.ConsumerType.Shared)
    client.create_producer("orders").send(b"late tea", deliver_after=timedelta(hours=1))
    floodgate_broker.advance("1h")
    assert consumer.receive(5_000).data() == b"late tea"


def subscribed(client: pulsar.Client, tries: int = 3) -> pulsar.Consumer:
    """Subscribe, and try again after an error, as a robust program does; return the consumer."""
    try:
        return client.subscribe("orders", "billing")
    except pulsar.PulsarException:
        if tries == 1:
            raise
        return subscribed(client, tries - 1)

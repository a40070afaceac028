"""Tests of a client as its users would write them."""

from __future__ import annotations

import pulsar


def test_orders_arrive(client: pulsar.Client, namespace: str) -> None:
    topic = f"persistent://{namespace}/orders"
    consumer = client.subscribe(topic, "billing")
    client.create_producer(topic).send(b"one")
    message = consumer.receive(5_000)
    consumer.acknowledge(message)
    assert message.data() == b"one"


def test_each_test_begins_with_nothing(client: pulsar.Client, clean_default: str) -> None:
    topic = f"persistent://{clean_default}/orders"
    client.create_producer(topic).send(b"of this test")
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    assert reader.read_next(5_000).data() == b"of this test"
    assert not reader.has_message_available()


def test_each_test_begins_with_nothing_again(client: pulsar.Client, clean_default: str) -> None:
    test_each_test_begins_with_nothing(client, clean_default)

from typing import Any

import pytest

from client.exceptions import InvalidConfiguration, OperationNotSupported
from client.interceptors import ProducerInterceptor
from client.producers.options import ProducerOptions
from client.schema import BytesSchema
from tests.support.peers.scripted_broker import ScriptedBroker


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"send_timeout_millis": -1}, "send_timeout_millis is a whole number from 0 on, not -1"),
        ({"max_pending_messages": "many"}, "max_pending_messages is a whole number from 0 on"),
        ({"batching_max_messages": 0}, "batching_max_messages is a whole number from 1 on, not 0"),
        ({"chunking_enabled": True}, "batches and chunks exclude each other"),
        ({"compression_type": "LZ4"}, "compression_type is one of CompressionType, such as .*LZ4"),
        ({"access_mode": 7}, "access_mode is one of ProducerAccessMode"),
        ({"producer_name": 5}, "producer_name is a str, not 5"),
        ({"initial_subscription_name": 5}, "initial_subscription_name is a str, not 5"),
        ({"properties": {"a": 1}}, "properties is a dict whose keys and values are str, not {"),
        ({"initial_sequence_id": "5"}, "initial_sequence_id is a whole number from -1 on, not '5'"),
        ({"initial_sequence_id": -7}, "initial_sequence_id is a whole number from -1 on, not -7"),
        ({"schema": dict}, r"schema is a schema such as JsonSchema\(Order\), not <class 'dict'>"),
        ({"schema": BytesSchema}, "schema is a schema such as"),
        ({"message_router": 5}, "message_router is a function of .*, not 5"),
        ({"interceptors": [object]}, "interceptors is a list of interceptors .*, not "),
        ({"interceptors": [ProducerInterceptor]}, "interceptors is a list of interceptors"),
        ({"batching_enabled": "no"}, "batching_enabled is True or False, not 'no'"),
    ],
)
def test_an_invalid_option_is_refused_with_its_name(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidConfiguration, match=text):
        ProducerOptions(**arguments)


@pytest.mark.parametrize("argument", ["encryption_key", "crypto_key_reader"])
def test_encryption_options_are_refused(argument: str) -> None:
    arguments: dict[str, Any] = {argument: "key"}
    with pytest.raises(OperationNotSupported, match="does not encrypt"):
        ProducerOptions(**arguments)


def test_a_send_timeout_of_0_is_no_timeout() -> None:
    assert ProducerOptions(send_timeout_millis=0).send_timeout_seconds is None
    assert ProducerOptions(send_timeout_millis=1_500).send_timeout_seconds == 1.5


@pytest.mark.parametrize(
    ("argument", "value", "text"),
    [
        ("properties", [1], "properties is a dict of str"),
        ("properties", {"a": 1}, "the property 'a' is a str, not 1"),
        ("properties", {1: "a"}, "a property's name is a str, not 1"),
        ("partition_key", b"k", "partition_key is a str, not b'k'"),
        ("ordering_key", 5, "ordering_key is a str, not 5"),
        ("partition_key", "\ud800", "partition_key is text that UTF-8 can write"),
        ("ordering_key", "\ud800", r"ordering_key is text .*, not '.ud800': replace its surr"),
        ("properties", {"a": "\udc80"}, "the property 'a' is text that UTF-8 can write"),
        ("properties", {"\ud800": ""}, "a property's name is text that UTF-8 can write"),
        ("sequence_id", -1, "sequence_id is a number from 0 on, not -1"),
        ("event_timestamp", 1.5, "event_timestamp is a number from 0 on"),
        ("deliver_at", "soon", "deliver_at is a number from 0 on"),
        ("replication_clusters", "here", "replication_clusters is a list of str"),
        ("disable_replication", "no", "disable_replication is True or False, not 'no'"),
        ("deliver_after", 5, "deliver_after is a timedelta, not 5"),
        ("content", 5, "without a schema content is bytes, not int"),
    ],
)
async def test_an_argument_of_the_wrong_type_is_refused_with_its_name(
    argument, value, text
) -> None:
    broker = ScriptedBroker()
    producer = await broker.producer()
    with pytest.raises((TypeError, ValueError), match=text):
        await producer.send(**{"content": b"", argument: value})  # type: ignore[arg-type]
    assert broker.memory.current_usage == 0


async def test_an_ordering_key_may_contain_any_bytes(broker, producer) -> None:
    producer.send_nowait(b"", ordering_key="\udcff", partition_key="ü")
    (sent,) = broker.sent
    assert (sent.metadata.ordering_key, sent.metadata.partition_key) == (b"\xff", "ü")


async def test_content_may_be_any_bytes_like_object(broker, producer) -> None:
    for content in (b"a", bytearray(b"b"), memoryview(b"c")):
        producer.send_nowait(content)
    assert broker.contents == [b"a", b"b", b"c"]


async def test_an_async_with_block_closes_its_producer(broker: ScriptedBroker) -> None:
    async with await broker.producer() as producer:
        assert producer.is_connected()
    assert not producer.is_connected()

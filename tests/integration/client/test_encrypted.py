"""Encrypted messages that this client cannot read."""

import pytest

import proto.PulsarApi_pb2 as pb
from client.client import Client
from client.consumers.consumer import Consumer
from client.exceptions import Timeout
from client.messages.enums import ConsumerCryptoFailureAction
from proto.frames import encode_payload_command

PRODUCER_ID = 900


async def publish_encrypted(client: Client, topic: str) -> None:
    """Publish a batch of two messages marked encrypted."""
    cnx = await client.connection_of(topic)
    await cnx.request(
        lambda request_id: pb.BaseCommand(
            type=pb.BaseCommand.PRODUCER,
            producer=pb.CommandProducer(
                topic=topic, producer_id=PRODUCER_ID, request_id=request_id, encrypted=True
            ),
        )
    )
    metadata = pb.MessageMetadata(
        producer_name="p", sequence_id=0, publish_time=1, num_messages_in_batch=2
    )
    metadata.encryption_keys.add(key="k", value=b"?")
    send = pb.CommandSend(producer_id=PRODUCER_ID, sequence_id=0, num_messages=2)
    command = pb.BaseCommand(type=pb.BaseCommand.SEND, send=send)
    data = encode_payload_command(command, metadata.SerializeToString(), b"secret")
    cnx.enqueue([data], len(data))


async def received(consumer: Consumer, producer_says: bytes) -> list[bytes]:
    """Return received messages up to a given message."""
    got: list[bytes] = []
    while producer_says not in got:
        message = await consumer.receive()
        got.append(message.data())
        await consumer.acknowledge(message)
    return got


@pytest.mark.parametrize(
    ("action", "delivered", "left"),
    [
        (ConsumerCryptoFailureAction.FAIL, [b"plain"], True),
        (ConsumerCryptoFailureAction.DISCARD, [b"plain"], False),
        (ConsumerCryptoFailureAction.CONSUME, [b"secret", b"plain"], False),
    ],
)
async def test_crypto_failure_action_decides_about_delivery(
    action, delivered, left, client, topic
) -> None:
    consumer = await client.subscribe(topic, "s", crypto_failure_action=action)
    await publish_encrypted(client, topic)
    async with await client.create_producer(topic) as producer:
        await producer.send(b"plain")
    got = await received(consumer, b"plain")
    await consumer.close()
    assert got == delivered
    again = await client.subscribe(
        topic, "s", crypto_failure_action=ConsumerCryptoFailureAction.CONSUME
    )
    if left:
        message = await again.receive()
        assert message.data() == b"secret"
        context = message.encryption_context()
        assert context is not None
        (key,) = context.keys()
        assert key.key == "k"
    else:
        with pytest.raises(Timeout):
            await again.receive(100)

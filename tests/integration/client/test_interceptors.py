"""Interceptors over a broker: every event arrives, and their errors change nothing."""

from collections.abc import Sequence

from client import (
    Client,
    ConsumerInterceptor,
    ConsumerType,
    Message,
    MessageId,
    ProducerInterceptor,
)
from client.messages.outgoing import OutgoingMessage


class Producing(ProducerInterceptor):
    """Marks each message and records its events."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def before_send(self, producer: object, message: OutgoingMessage) -> None:
        message.properties = {**(message.properties or {}), "marked": "yes"}
        self.seen.append("before_send")

    def on_send_acknowledgement(
        self,
        producer: object,
        message: OutgoingMessage,
        message_id: MessageId | None,
        error: BaseException | None,
    ) -> None:
        self.seen.append(f"acknowledged {message_id is not None} {error}")

    def on_close(self) -> None:
        self.seen.append("closed")


class Consuming(ConsumerInterceptor):
    """Records its events."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def before_consume(self, consumer: object, message: Message) -> None:
        self.seen.append(f"before {message.properties()}")

    def on_acknowledge(
        self, consumer: object, message_id: MessageId, error: BaseException | None
    ) -> None:
        self.seen.append("acknowledged")

    def on_negative_acks_send(self, consumer: object, message_ids: Sequence[MessageId]) -> None:
        self.seen.append(f"refused {len(message_ids)}")

    def on_close(self) -> None:
        self.seen.append("closed")


class Failing(ProducerInterceptor, ConsumerInterceptor):
    def before_send(self, *_: object) -> None:
        raise RuntimeError("before_send")

    def on_send_acknowledgement(self, *_: object) -> None:
        raise RuntimeError("on_send_acknowledgement")

    def before_consume(self, *_: object) -> None:
        raise RuntimeError("before_consume")

    def on_acknowledge(self, *_: object) -> None:
        raise RuntimeError("on_acknowledge")

    def on_close(self) -> None:
        raise RuntimeError("on_close")


async def test_interceptors_are_called_at_every_message_event(client: Client, topic: str) -> None:
    producing, consuming = Producing(), Consuming()
    consumer = await client.subscribe(
        topic,
        "s",
        ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=10,
        interceptors=[consuming],
    )
    async with await client.create_producer(topic, interceptors=[producing]) as producer:
        await producer.send(b"a")
    async with consumer:
        await consumer.negative_acknowledge(await consumer.receive())
        await consumer.acknowledge(await consumer.receive())
    assert producing.seen == ["before_send", "acknowledged True None", "closed"]
    before = "before {'marked': 'yes'}"
    assert consuming.seen == [before, "refused 1", before, "acknowledged", "closed"]


async def test_an_interceptor_error_has_no_effect(client: Client, topic: str, caplog) -> None:
    """Upstream ProducerImplTest.testInterceptorError: nothing leaks, whatever the error."""
    caplog.set_level("CRITICAL", "client.interceptors")
    failing = Failing()
    producing = Producing()
    consumer = await client.subscribe(topic, "s", interceptors=[failing])
    producer = await client.create_producer(topic, interceptors=[failing, producing])
    await producer.send(b"a")
    message = await consumer.receive()
    await consumer.acknowledge(message)
    await producer.close()
    await consumer.close()
    assert message.data() == b"a"
    assert producing.seen == ["before_send", "acknowledged True None", "closed"]
    assert client.memory.current_usage == 0

"""Example program that uses the client library to publish orders and bill the customers.

    python -m examples.orders pulsar://127.0.0.1:6650 [file:///path/of/a/token]

A producer publishes orders, a consumer bills them, and both share a memory limit. A schema gives
the producer, the consumer and the messages the type of their values; all types pass
``mypy --strict``.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from client import (
    AuthenticationToken,
    Client,
    ConsumerDeadLetterPolicy,
    ConsumerType,
    InitialPosition,
)
from client.schema import JsonSchema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from client import Consumer, MessageId, Producer

TOPIC = "persistent://public/default/orders"


@dataclass
class Order:
    """A customer's order, which is the value of a message.

    Attributes:
        customer: The customer's name.
        cents: The price in cents.
    """

    customer: str
    cents: int


async def publish(producer: Producer[Order], orders: Iterable[Order]) -> list[MessageId]:
    """Publish orders, each with the customer as the message key; return the message ids."""
    sends = [producer.send(order, partition_key=order.customer) for order in orders]
    return await asyncio.gather(*sends)


async def bill(consumer: Consumer[Order], count: int) -> dict[str, int]:
    """Receive ``count`` orders, and return what each customer owes in cents.

    Orders that cost nothing are acknowledged negatively.
    """
    bills: dict[str, int] = {}
    for _ in range(count):
        message = await consumer.receive()
        order = message.value()
        if order.cents == 0:
            await consumer.negative_acknowledge(message)
            continue
        bills[order.customer] = bills.get(order.customer, 0) + order.cents
        await consumer.acknowledge(message)
    return bills


async def main(service_url: str, token: str | None = None) -> dict[str, int]:
    """Publish three orders, and return what each customer owes.

    ``file:PATH`` or ``env:NAME`` states where a token is.
    """
    orders = [Order("anna", 250), Order("bert", 100), Order("anna", 50)]
    shown = None if token is None else AuthenticationToken(token)
    async with Client(service_url, shown, memory_limit_bytes=16 * 1024 * 1024) as client:
        consumer = await client.subscribe(
            TOPIC,
            "billing",
            ConsumerType.Shared,
            schema=JsonSchema(Order),
            initial_position=InitialPosition.Earliest,
            dead_letter_policy=ConsumerDeadLetterPolicy(3),
        )
        async with await client.create_producer(TOPIC, schema=JsonSchema(Order)) as producer:
            await publish(producer, orders)
        return await bill(consumer, len(orders))


if __name__ == "__main__":
    for customer, cents in asyncio.run(main(*sys.argv[1:3])).items():
        print(f"{customer} pays {cents / 100:.2f}")  # noqa: T201 - what it is for

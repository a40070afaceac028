"""Both imports under common names, and shared steps of the tests."""

import asyncio
import json
import os
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pulsar
import pulsar.asyncio
import pulsar.schema
import pytest

import client
import client.schema

PATIENCE_SECONDS = 60.0
QUIET_SECONDS = 0.2
"""Seconds of silence that show the absence of a message."""
DELAY_SECONDS = 1.5 if "PULSAR_SERVICE_URL" in os.environ else 1.0
"""Delivery delay: an external broker checks once a second, Floodgate more often."""
OFFICIAL = SimpleNamespace(
    **{**vars(pulsar), "Client": pulsar.asyncio.Client, "schema": pulsar.schema},
    AnyError=(pulsar.asyncio.PulsarException, pulsar.PulsarException),
)
OURS = SimpleNamespace(
    **{name: getattr(client, name) for name in client.__all__},
    schema=client.schema,
    AnyError=client.PulsarException,
)
ANY_ERROR = (*OFFICIAL.AnyError, OURS.AnyError)
APIS = {"pulsar.asyncio": OFFICIAL, "client": OURS}


@dataclass(frozen=True)
class Place:
    """Broker and client package of a test.

    Attributes:
        api: Names of an import.
        service_url: The cluster's.
        web_url: Its REST API.
    """

    api: Any
    service_url: str
    web_url: str

    @asynccontextmanager
    async def client(self, **options: object) -> AsyncIterator[Any]:
        """Open a client for a block."""
        opened = self.api.Client(self.service_url, **options)
        try:
            yield opened
        finally:
            with suppress(self.api.AnyError):
                await within(opened.close())

    def end(self, which: str) -> Any:
        """Return ``earliest`` or ``latest`` as an id for seek.

        The official asyncio client's constants have a type that its own seek refuses.
        """
        found = getattr(self.api.MessageId, which)
        return self.api.MessageId(
            found.partition(), found.ledger_id(), found.entry_id(), found.batch_index()
        )

    async def ask(self, method: str, path: str, body: object = None) -> None:
        """Send a request to the REST API; without a body if that is None."""
        request = urllib.request.Request(
            f"{self.web_url}/admin/v2/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        await asyncio.to_thread(lambda: urllib.request.urlopen(request, timeout=60).close())

    async def partitioned(self, partitions: int) -> str:
        """Return a new topic with partitions."""
        topic = new_topic()
        await self.ask("PUT", f"{topic.replace('://', '/')}/partitions", partitions)
        return topic


def new_topic() -> str:
    """Return a new topic."""
    return f"persistent://public/default/api-{uuid4().hex}"


async def within(waited: Any, seconds: float = PATIENCE_SECONDS) -> Any:
    """Await with a deadline.

    A late awaitable is not cancelled: the official client does not tolerate cancellation.
    """
    task = asyncio.ensure_future(waited)
    done, _ = await asyncio.wait([task], timeout=seconds)
    assert done, f"it took longer than {seconds:g} s"
    return await task


async def sent_together(client: Any, topic: str, count: int, *, batched: bool = True) -> list[Any]:
    """Send messages concurrently; return their ids."""
    producer = await client.create_producer(topic, batching_enabled=batched)
    sends = [within(producer.send(b"%d" % number)) for number in range(count)]
    ids = await asyncio.gather(*sends)
    await within(producer.close())
    return ids


async def received(consumer: Any, count: int) -> list[Any]:
    """Receive ``count`` messages."""
    return [await within(consumer.receive()) for _ in range(count)]


def position(found: Any) -> tuple[int, int, int]:
    """Return a message's position, without fields known to a single side."""
    return found.ledger_id(), found.entry_id(), found.batch_index()


@asynccontextmanager
async def nothing_comes(consumer: Any) -> AsyncIterator[None]:
    """Check that a consumer receives no message; the block must close the consumer.

    The pending receive ends with the close.
    """
    waiting = asyncio.ensure_future(consumer.receive())
    done, _ = await asyncio.wait([waiting], timeout=QUIET_SECONDS)
    try:
        assert not done, "a message came"
        yield
    finally:
        await asyncio.wait([waiting], timeout=PATIENCE_SECONDS)
        assert waiting.done(), "closing does not end a receive"
        waiting.exception()


def code_of(error: Any) -> str:
    """Return the name of an error of either import."""
    return str(error.error().name) if hasattr(error, "error") else type(error).__name__


async def refusal(awaited: Any) -> str:
    """Return the name of the error that an awaitable raises."""
    with pytest.raises(ANY_ERROR) as caught:
        await within(awaited)
    return code_of(caught.value)

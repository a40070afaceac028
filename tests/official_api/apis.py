"""The two imports under one name each, and the few steps that all tests take."""

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
"""Seconds in which nothing has to come before it counts as nothing."""
DELAY_SECONDS = 1.5 if "PULSAR_SERVICE_URL" in os.environ else 1.0
"""How late a delayed message is to come: a broker that is named looks once a second, ours more."""
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
    """The broker that a test talks to, and the package that it talks with.

    Attributes:
        api: The names of one import.
        service_url: The cluster's.
        web_url: Its REST API.
    """

    api: Any
    service_url: str
    web_url: str

    @asynccontextmanager
    async def client(self, **options: object) -> AsyncIterator[Any]:
        """Have a client for a block."""
        opened = self.api.Client(self.service_url, **options)
        try:
            yield opened
        finally:
            with suppress(self.api.AnyError):
                await within(opened.close())

    def end(self, which: str) -> Any:
        """Return ``earliest`` or ``latest`` as an id that can be sought.

        The official asyncio client's are of a type that its own seek refuses.
        """
        found = getattr(self.api.MessageId, which)
        return self.api.MessageId(
            found.partition(), found.ledger_id(), found.entry_id(), found.batch_index()
        )

    async def put(self, path: str, body: object = None) -> None:
        """Ask the REST API to make something."""
        request = urllib.request.Request(
            f"{self.web_url}/admin/v2/{path}",
            method="PUT",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        await asyncio.to_thread(lambda: urllib.request.urlopen(request, timeout=60).close())

    async def post(self, path: str) -> None:
        """Ask the REST API to do something."""
        request = urllib.request.Request(f"{self.web_url}/admin/v2/{path}", method="POST")
        await asyncio.to_thread(lambda: urllib.request.urlopen(request, timeout=60).close())

    async def partitioned(self, partitions: int) -> str:
        """Return a new topic with some partitions."""
        topic = new_topic()
        await self.put(f"persistent/{topic.partition('://')[2]}/partitions", partitions)
        return topic


def new_topic() -> str:
    """Return a topic that nobody else uses."""
    return f"persistent://public/default/api-{uuid4().hex}"


async def within(waited: Any, seconds: float = PATIENCE_SECONDS) -> Any:
    """Await something that must not take long.

    It is not cancelled when it does: the official client cannot bear that.
    """
    task = asyncio.ensure_future(waited)
    done, _ = await asyncio.wait([task], timeout=seconds)
    assert done, f"it took longer than {seconds:g} s"
    return await task


async def received(consumer: Any, count: int) -> list[Any]:
    """Receive some messages."""
    return [await within(consumer.receive()) for _ in range(count)]


def position(found: Any) -> tuple[int, int, int]:
    """Return where a message is, without what only one side of a topic knows of it."""
    return found.ledger_id(), found.entry_id(), found.batch_index()


@asynccontextmanager
async def nothing_comes(consumer: Any) -> AsyncIterator[None]:
    """Check that a consumer gets nothing; it is to be closed in the block.

    Its receive is left to wait, and ends by the closing.
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
    """Return the name of an error, whichever import it is of."""
    return str(error.error().name) if hasattr(error, "error") else type(error).__name__


async def refusal(awaited: Any) -> str:
    """Return the name of the error by which something fails."""
    with pytest.raises(ANY_ERROR) as caught:
        await within(awaited)
    return code_of(caught.value)

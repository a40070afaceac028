"""Clients of a load over a scripted broker, on a virtual loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic import TypeAdapter

from loadgen.behaviours.registry import AnyGroup
from loadgen.engine.client import LoadClient
from loadgen.engine.context import RunTime, TaskContext
from loadgen.plan.clients import ClientPlan, Namespace
from loadgen.virtual.loop import VirtualClock, VirtualLoop
from tests.support.discovery.scripted_broker import URL, ScriptedBroker

NAMESPACE = Namespace(name="public/default")


def virtual_clock() -> VirtualClock:
    """Return the running loop's clock."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return VirtualClock(loop)


def broker_of(**fields: Any) -> ScriptedBroker:
    """Return a broker on the running loop."""
    return ScriptedBroker(virtual_clock(), **fields)


def client_of(broker: ScriptedBroker, *, drops: tuple[float, ...] = (), **group: Any) -> LoadClient:
    """Return an unstarted client; the agreed start is now."""
    values = {"name": "g", "count": 1, **group}
    own = TypeAdapter(AnyGroup).validate_python(values)
    now = broker.clock.now()
    context = TaskContext(URL, broker, RunTime(broker.clock.now, now), broker.clock)
    return LoadClient(ClientPlan(0, 0, own, NAMESPACE, 0.0, 1, drops), context)


@asynccontextmanager
async def running(client: LoadClient) -> AsyncIterator[asyncio.Task[None]]:
    """Run a client's behaviour for the length of a block."""
    await client.service.ready()
    task = asyncio.get_running_loop().create_task(client.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await client.end()

"""A setting changed on one broker becomes effective on another with the same PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from broker.service import BrokerService
from tests.support.processes.cluster import broker_config, until

LOOKUPS = "maxConcurrentLookupRequest"
HEAP_MB = "maxTopicListInFlightHeapMemSizeMB"
STARTED_WITH = {LOOKUPS: "9", HEAP_MB: "50"}


@asynccontextmanager
async def two_brokers(url: str) -> AsyncIterator[tuple[BrokerService, BrokerService]]:
    config = broker_config({"metadataStoreUrl": url, **STARTED_WITH})
    async with BrokerService(config) as one, BrokerService(config) as other:
        yield one, other


async def test_a_dynamic_value_set_on_a_broker_applies_on_the_other(postgresql_url: str) -> None:
    async with two_brokers(postgresql_url) as (one, other):
        await one.dynamic.set(LOOKUPS, "7")
        await one.dynamic.set(HEAP_MB, "20")
        await until(lambda: other.limiter.statistics().heap.max_permits == 20 * 2**20)
        assert other.lookups.max_requests == 7
        assert other.dynamic.runtime()[LOOKUPS] == "7"


async def test_deleting_a_dynamic_value_restores_the_brokers_own_value(postgresql_url: str) -> None:
    async with two_brokers(postgresql_url) as (one, other):
        await one.dynamic.set(LOOKUPS, "7")
        await until(lambda: other.lookups.max_requests == 7)
        await one.dynamic.delete(LOOKUPS)
        await until(lambda: other.lookups.max_requests == 9)


async def test_a_dynamic_value_set_during_a_lost_connection_applies_after_reconnecting(
    postgresql_url: str,
) -> None:
    async with two_brokers(postgresql_url) as (one, other):
        again = asyncio.Event()
        listener, connect = other.store._listener, other.store._listener._connect

        async def later() -> object:
            await again.wait()
            return await connect()

        listener._connect = later
        listener._connection.terminate()
        await until(lambda: not other.store.connected)
        await one.dynamic.set(LOOKUPS, "7")
        assert other.lookups.max_requests == 9
        again.set()
        await until(lambda: other.lookups.max_requests == 7)

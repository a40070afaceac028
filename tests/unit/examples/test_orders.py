"""The example program of the client library."""

from examples.orders import main
from tests.support.processes.cluster import cluster


async def test_orders_are_billed() -> None:
    async with cluster() as parts:
        assert await main(parts.broker.service_url) == {"anna": 300, "bert": 100}

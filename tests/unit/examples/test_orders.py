"""The example program of the client library."""

from examples.orders import main
from tests.support.processes.cluster import cluster


async def test_the_example_program_bills_the_orders_of_each_customer() -> None:
    async with cluster() as parts:
        assert await main(parts.broker.service_url) == {"anna": 300, "bert": 100}

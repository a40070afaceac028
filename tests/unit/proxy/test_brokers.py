"""Connections to the configured brokers: whichever can be reached answers first questions."""

import pytest

from client.exceptions import ConnectError
from proxy.brokers import AVOIDED_SECONDS, BrokerConnections, ServiceAddresses
from proxy.config import ProxyConfig
from tests.support.clocks.manual_clock import ManualClock

ONE, TWO, OTHER = ("one", 1), ("two", 2), ("other", 3)


class Pool:
    """Connections named by their address; some addresses are unreachable."""

    def __init__(self) -> None:
        self.away: set[tuple[str, int]] = set()
        self.asked: list[tuple[str, int]] = []

    async def get(self, address: tuple[str, int], *, tls: bool = False) -> tuple[str, int]:
        assert not tls
        self.asked.append(address)
        if address in self.away:
            raise ConnectError(f"{address} cannot be reached")
        return address

    async def close(self) -> None:
        """No-op."""


async def test_another_configured_broker_replaces_an_unreachable_broker_for_a_while() -> None:
    pool, clock = Pool(), ManualClock()
    brokers = BrokerConnections(pool, ServiceAddresses((ONE, TWO), clock))
    assert await brokers.get(ONE) == ONE
    pool.away.add(ONE)
    # And the first is not tried each time
    assert [await brokers.get(ONE), await brokers.get(ONE)] == [TWO, TWO]
    assert pool.asked == [ONE, ONE, TWO, TWO]
    pool.away.clear()
    clock.advance(AVOIDED_SECONDS)
    assert await brokers.get(ONE) == ONE


async def test_a_broker_named_by_an_answer_is_never_replaced_by_another_broker() -> None:
    pool = Pool()
    brokers = BrokerConnections(pool, ServiceAddresses((ONE, TWO), ManualClock()))
    pool.away.add(TWO)
    assert await brokers.get(OTHER) == OTHER
    with pytest.raises(ConnectError):
        await brokers.get(TWO)


async def test_a_connect_error_is_raised_if_every_configured_broker_is_unreachable() -> None:
    pool = Pool()
    brokers = BrokerConnections(pool, ServiceAddresses((ONE, TWO), ManualClock()))
    pool.away.update((ONE, TWO))
    with pytest.raises(ConnectError):
        await brokers.get(ONE)
    assert pool.asked == [ONE, TWO]


def test_a_service_url_may_name_several_brokers_with_default_ports() -> None:
    config = ProxyConfig.from_properties({"brokerServiceURL": "pulsar://a:1,b,[::1]:3"})
    assert config.broker_addresses == (("a", 1), ("b", 6650), ("::1", 3))

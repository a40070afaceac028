"""A broker and a proxy with plain and TLS ports, in the test's own loop."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from broker.configuration.config import BrokerConfig
from broker.service import BrokerService
from proxy.config import ProxyConfig
from proxy.service import ProxyService
from tests.support.certificates import PemFiles
from tests.support.clocks.manual_clock import ManualClock, stands_until_an_error

LOCAL = {"bindAddress": "127.0.0.1", "floodgateMessageStore": "memory"}


@asynccontextmanager
async def tls_broker(
    pem: PemFiles, clock: ManualClock | None = None, **keys: str
) -> AsyncIterator[BrokerService]:
    """Run a broker for a block; time stands still by default."""
    ports = ("brokerServicePort", "brokerServicePortTls", "webServicePort", "webServicePortTls")
    config = BrokerConfig.from_properties(
        {**LOCAL, **dict.fromkeys(ports, "0"), **pem.keys(**keys)}
    )
    clock = clock or ManualClock()
    async with BrokerService(config, clock=clock) as broker:
        with stands_until_an_error(clock):
            yield broker
    assert broker.handshakes.under_way == 0
    assert broker.connection_counters.active == 0


@asynccontextmanager
async def tls_proxy(
    broker: BrokerService, pem: PemFiles, **keys: str
) -> AsyncIterator[ProxyService]:
    given = {
        **LOCAL,
        "servicePort": "0",
        "servicePortTls": "0",
        "webServicePort": "0",
        "webServicePortTls": "0",
        "tlsEnabledWithBroker": "true",
        "tlsHostnameVerificationEnabled": "true",
        "brokerServiceURLTLS": broker.urls.service_tls,
        "brokerWebServiceURLTLS": broker.urls.web_tls,
        "brokerClientTrustCertsFilePath": pem.trust,
        **pem.keys(**keys),
    }
    async with ProxyService(ProxyConfig.from_properties(given)) as proxy:
        yield proxy
    assert proxy.connection_counters.active == 0

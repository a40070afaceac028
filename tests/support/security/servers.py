"""Broker and proxy in the test's own loop, started with the keys of the recordings."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps

from broker.configuration.config import BrokerConfig
from broker.service import BrokerService
from proxy.config import ProxyConfig
from proxy.service import ProxyService
from tests.recording.security import keys
from tests.support.clocks.manual_clock import ManualClock, stands_until_an_error
from tests.support.golden.exchange import Rest
from tests.support.golden.rest import ask
from tests.support.security.credentials import Credential, token
from tests.support.security.world import NAMESPACE, build

_LOCAL = {"bindAddress": "127.0.0.1", "webServicePort": "0"}
_LOOKED_UP = ("orders", "other", "used", *(f"parted-partition-{one}" for one in range(2)))
_IN_ALL_BUNDLES = tuple(f"bundle-{one}" for one in range(16))


@dataclass(frozen=True)
class Secured:
    """Servers with the recordings' world.

    Attributes:
        broker: The broker.
        proxy: A proxy in front, with role ``gate``.
    """

    broker: BrokerService
    proxy: ProxyService

    @property
    def address(self) -> str:
        """Host and port of the broker."""
        return self.broker.service_url.partition("://")[2]

    @property
    def proxy_address(self) -> str:
        """Host and port of the proxy."""
        return self.proxy.service_url.partition("://")[2]

    @property
    def web(self) -> str:
        """Host and web port of the broker."""
        return self.broker.web_service_url.partition("://")[2]

    @property
    def proxy_web(self) -> str:
        """Host and web port of the proxy."""
        return self.proxy.web_service_url.partition("://")[2]


@asynccontextmanager
async def secured(
    profile: str, *, forwarding: bool = False, broker: dict[str, str] | None = None
) -> AsyncIterator[Secured]:
    """Start a broker and a proxy and make the world. Time stands still.

    Args:
        profile: ``pulsar`` or ``floodgate``.
        forwarding: Whether the proxy forwards credentials.
        broker: More keys of the broker.
    """
    common = {**_LOCAL, "floodgateProfile": profile}
    of_broker = {**_keys("broker", forwarding=forwarding), **common, "brokerServicePort": "0"}
    config = BrokerConfig.from_properties({**of_broker, **(broker or {})})
    clock = ManualClock(time.time())
    async with BrokerService(config, clock=clock) as served:
        of_proxy = {
            **_keys("proxy", forwarding=forwarding),
            **common,
            "servicePort": "0",
            "authorizationEnabled": "true",
            "brokerServiceURL": served.service_url,
            "brokerWebServiceURL": served.web_service_url,
        }
        async with ProxyService(ProxyConfig.from_properties(of_proxy), clock) as proxy:
            found = Secured(served, proxy)
            with stands_until_an_error(clock):
                await asyncio.to_thread(make_world, found.web)
                yield found


def make_world(web: str) -> None:
    """Make the recorded world and have the broker serve all of it."""
    build(web)
    headers = Credential("super", token("super")).headers
    for topic in (*_LOOKED_UP, *_IN_ALL_BUNDLES):
        path = f"/lookup/v2/topic/persistent/{NAMESPACE}/{topic}"
        assert ask(web, Rest("GET", path, None, 0), headers).status == 200


def _keys(server: str, *, forwarding: bool) -> dict[str, str]:
    given = (line.partition("=") for line in keys(server, forwarding=forwarding))
    return {key: value for key, _, value in given}


def beside_the_servers(test: Callable[..., None]) -> Callable[..., Awaitable[None]]:
    """Run a blocking test in a thread, while the servers of its fixture serve in the event loop."""

    @wraps(test)
    async def run(**fixtures: object) -> None:
        await asyncio.to_thread(test, **fixtures)

    return run

"""The brokers that a proxy is to pass connections on to: a lookup of each topic tells them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from client.exceptions import PulsarException
from loadgen.access import client_of
from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.scenario import Scenario

_ASKED_AT_ONCE = 32


async def tunnels_to(scenario: Scenario, topics: Sequence[str]) -> dict[str, str]:
    """Return ``host:port`` of the broker of each topic that is reached through a proxy.

    A server that says of the first topic that no proxy is needed is asked for no other.

    Raises:
        LoadgenError: There is no answer, or a refusal.
    """
    found: dict[str, str] = {}
    service = urlsplit(scenario.service_url).netloc
    async with client_of(
        scenario.service_url, operation_timeout_seconds=scenario.timeout_seconds
    ) as client:

        async def ask(left: Iterator[str]) -> bool:
            """Look one topic after the other up; false as soon as no proxy is needed."""
            for topic in left:
                try:
                    place = await client.lookup(topic)
                except PulsarException as error:
                    raise LoadgenError(f"{topic} cannot be looked up: {error}") from None
                broker = urlsplit(place.broker_service_url).netloc
                if not place.proxy_through_service_url or broker == service:
                    return False
                found[topic] = broker
            return True

        if await ask(iter(topics[:1])):
            left = iter(topics[1:])
            await asyncio.gather(*(ask(left) for _ in range(_ASKED_AT_ONCE)))
    return found

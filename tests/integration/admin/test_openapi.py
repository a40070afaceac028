"""``/openapi.json`` describes every route of both servers."""

from __future__ import annotations

from typing import Any

import aiohttp

from server.seeing.own_operations import OWN_OPERATIONS
from tests.support.processes.cluster import cluster


async def described(url: str) -> dict[tuple[str, str], dict[str, Any]]:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/openapi.json") as answer:
        paths = (await answer.json())["paths"]
    return {
        (method.upper(), path): one for path, item in paths.items() for method, one in item.items()
    }


async def test_every_route_is_described_and_nothing_else() -> None:
    # Given
    own = {(one.method, one.path) for one in OWN_OPERATIONS}
    async with cluster(both={"floodgateFaultsEnabled": "true"}) as parts:
        # When
        of_broker = await described(parts.broker.web_service_url)
        of_proxy = await described(parts.proxy.web_service_url)
        # Then
        assert [
            asked for asked, one in {**of_broker, **of_proxy}.items() if not one["summary"]
        ] == []
        assert set(of_proxy) <= own <= {*of_broker, *of_proxy}
        assert ("GET", "/admin/v2/persistent/{tenant}/{namespace}/{topic}/stats") in of_broker

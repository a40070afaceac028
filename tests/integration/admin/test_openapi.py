"""``/openapi.json`` describes every route of both servers."""

import json
import re
from typing import Any

import aiohttp

from server.seeing.own_operations import OWN_OPERATIONS
from tests.support.peers.rest_client import rest_client
from tests.support.processes.cluster import cluster

OBJECT = re.compile(r"<[\w.]+ object|\bat 0x[0-9a-f]{6}")


async def test_every_referenced_component_is_defined() -> None:
    async with cluster(both={"floodgateFaultsEnabled": "true"}) as parts:
        for part in (parts.broker, parts.proxy):
            found = await document(part.web_service_url)
            named = re.findall(r'"\$ref": "#/components/(\w+)/(\w+)"', json.dumps(found))
            assert [one for one in named if one[1] not in found["components"][one[0]]] == []


async def document(url: str) -> dict[str, Any]:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/openapi.json") as answer:
        found: dict[str, Any] = await answer.json()
    return found


async def described(url: str) -> dict[tuple[str, str], dict[str, Any]]:
    paths = (await document(url))["paths"]
    return {
        (method.upper(), path): one for path, item in paths.items() for method, one in item.items()
    }


async def test_every_operation_has_a_summary_and_all_own_operations_are_described() -> None:
    own = {(one.method, one.path) for one in OWN_OPERATIONS}
    async with cluster(both={"floodgateFaultsEnabled": "true"}) as parts:
        of_broker = await described(parts.broker.web_service_url)
        of_proxy = await described(parts.proxy.web_service_url)
        assert [
            asked for asked, one in {**of_broker, **of_proxy}.items() if not one["summary"]
        ] == []
        assert set(of_proxy) <= own <= {*of_broker, *of_proxy}
        assert ("GET", "/admin/v2/persistent/{tenant}/{namespace}/{topic}/stats") in of_broker


async def test_no_get_answer_shows_the_repr_of_a_python_object() -> None:
    values = {"domain": "persistent", "tenant": "public", "namespace": "default", "topic": "t"}
    values |= {"cluster": "standalone", "subName": "s", "bundle": "0x00000000_0x40000000"}
    found = []
    async with cluster(both={"floodgateFaultsEnabled": "true"}) as parts:
        async with rest_client(parts.broker) as rest:
            await rest.done("PUT", "/admin/v2/persistent/public/default/t/subscription/s")
        for part in (parts.broker, parts.proxy):
            reads = await described(part.web_service_url)
            async with aiohttp.ClientSession(part.web_service_url) as session:
                for path in [path for method, path in reads if method == "GET"]:
                    full = re.sub(r"\{(\w+)\}", lambda one: values.get(one[1], "0"), path)
                    async with session.get(f"{full}?metadata=true&applied=true") as answer:
                        if OBJECT.search(await answer.text()):
                            found.append(full)
    assert found == []

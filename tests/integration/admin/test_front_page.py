"""``GET /`` on the web port describes the server."""

import re

import aiohttp
import pytest

from proto.version import VERSION
from tests.support.processes.cluster import Cluster, cluster


async def page(parts: Cluster, role: str, path: str = "/") -> tuple[int, str]:
    url = f"{parts.part(role).web_service_url}{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_the_front_page_shows_version_role_cluster_and_url(role: str, profile: str) -> None:
    async with cluster(profile=profile) as parts:
        status, text = await page(parts, role)
        first, second, *_ = text.splitlines()
        assert status == 200
        assert first == f"Floodgate {VERSION}: {role} of cluster standalone, profile {profile}"
        assert second == f"ok; clients connect to {parts.part(role).service_url}"


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("broker", {"/metrics/", "/admin/v2/brokers/ready", "/admin/v2/floodgate/limiter",
                    "/admin/v2/tenants", "/admin/v2/brokers/configuration/runtime"}),
        ("proxy", {"/metrics/", "/admin/v2/brokers/ready", "/admin/v2/floodgate/limiter"}),
    ],
)  # fmt: skip
async def test_every_path_on_the_front_page_is_answered_200(role: str, expected: set[str]) -> None:
    async with cluster() as parts:
        text = (await page(parts, role))[1]
        paths = re.findall(r"^(/\S*)", text, re.MULTILINE)
        assert expected <= set(paths)
        for path in paths:
            named = path.format(tenant="public", namespace="default", topic="t")
            assert (await page(parts, role, named))[0] == 200, path

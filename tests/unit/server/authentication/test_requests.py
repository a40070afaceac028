"""HTTP requests are authenticated, or refused."""

import base64
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from prometheus_client import CollectorRegistry

from server.authentication.requests import (
    OPEN_PATHS,
    authentication_middleware,
    open_paths,
    session_of_request,
)
from server.authentication.service import open_service
from server.configuration.authentication import AuthenticationSettings, Source, TokenSettings
from server.http import HttpPort, Readiness, application, serve_http
from tests.support.authentication.credentials import SECRET, token
from tests.support.clocks.manual_clock import ManualClock


class Asked:
    """A running endpoint whose only page returns the caller's role."""

    def __init__(self, base: str, client: ClientSession) -> None:
        self._base = base
        self._client = client

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
        async with self._client.get(self._base + path, headers=headers) as answer:
            return answer.status, await answer.text()


async def _who(request: web.Request) -> web.Response:
    session = session_of_request(request)
    return web.Response(text=" for ".join(session.checked_roles) if session else "anybody")


@pytest.fixture
async def asked(request: pytest.FixtureRequest) -> AsyncIterator[Asked]:
    source = Source(f"data:;base64,{base64.b64encode(SECRET).decode()}")
    service = open_service(AuthenticationSettings(("token",), TokenSettings(source)), ManualClock())
    assert service is not None
    step = authentication_middleware(service, open_paths(covers_metrics=request.param))
    routes = [web.get("/", _who), web.get("/admin/v2/tenants", _who)]
    app = application(CollectorRegistry(), Readiness(), routes, [step])
    server = await serve_http(app, "127.0.0.1", [HttpPort(0)])
    async with ClientSession() as client:
        yield Asked(f"http://127.0.0.1:{server.listeners[0].port}", client)
    await server.close()


def bearing(role: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(sub=role).decode()}", **more}


@pytest.mark.parametrize("asked", [True], indirect=True)
async def test_a_request_without_valid_credentials_is_refused(asked: Asked) -> None:
    refused = (401, '{"reason":"Authentication required"}')
    assert await asked.get("/admin/v2/tenants") == refused
    assert await asked.get("/admin/v2/tenants", {"Authorization": "Bearer x"}) == refused
    assert await asked.get("/metrics/") == refused
    assert await asked.get("/nothing") == refused
    assert await asked.get("/admin/v2/tenants", bearing("ann")) == (200, "ann")


@pytest.mark.parametrize("asked", [False], indirect=True)
async def test_open_paths_need_no_credentials(asked: Asked) -> None:
    assert await asked.get("/") == (200, "anybody")
    assert (await asked.get("/metrics/"))[0] == 200


@pytest.mark.parametrize("asked", [False], indirect=True)
async def test_the_original_principal_of_a_proxy_is_read_from_its_header(asked: Asked) -> None:
    headers = bearing("proxy", **{"X-Original-Principal": "ann"})
    assert await asked.get("/admin/v2/tenants", headers) == (200, "proxy for ann")


def test_the_threat_model_names_every_open_path() -> None:
    page = Path(__file__).parents[4] / "docs" / "threat-model.md"
    _, _, behind = page.read_text(encoding="utf-8").partition("Peers without valid credentials")
    promise, _, _ = behind.partition("\n- ")
    # The path without a slash redirects to the path with a slash
    assert [one for one in OPEN_PATHS if f"`{one}" not in promise] == []

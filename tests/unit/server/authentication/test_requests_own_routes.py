"""A server's own routes require superusers, except for listed routes."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession, web
from prometheus_client import CollectorRegistry

from server.authentication.providers import Principal
from server.authentication.refused import RefusedOperations, Subject
from server.authentication.requests import SESSION, SUPERUSER_NEEDED, superusers_only
from server.authentication.session import ClientSession as Known
from server.configuration.authorization import AuthorizationSettings
from server.http import HttpPort, Readiness, application, serve_http
from tests.support.clocks.manual_clock import ManualClock

SETTINGS = AuthorizationSettings(frozenset({"super", "gate"}), frozenset({"gate"}))


async def _served(_: web.Request) -> web.Response:
    return web.Response(text="served")


async def _dispatched(_: web.Request) -> web.Response:
    return web.Response(text="dispatched")


@web.middleware
async def _as_said(request: web.Request, handler) -> web.StreamResponse:
    """Trust the sender named in the request's header."""
    role, _, original = request.headers.get("X-Who", "").partition(" for ")
    if role:
        named = Principal(original, "none") if original else None
        request[SESSION] = Known(Principal(role, "token"), named)
    return await handler(request)


@pytest.fixture
def refused() -> RefusedOperations:
    return RefusedOperations(ManualClock())


@pytest.fixture
async def base(refused: RefusedOperations) -> AsyncIterator[str]:
    routes = [
        web.get("/admin/v2/floodgate/secret/{id}", _served),
        web.get("/added/later", _served),
        web.get("/openapi.json", _served),
        web.route("*", "/admin/v2/{rest:.*}", _dispatched),
    ]
    steps = [_as_said, superusers_only(lambda: SETTINGS, {_dispatched}, refused)]
    app = application(CollectorRegistry(), Readiness(), routes, steps)
    server = await serve_http(app, "127.0.0.1", [HttpPort(0)])
    yield f"http://127.0.0.1:{server.listeners[0].port}"
    await server.close()


async def asked(base: str, path: str, who: str) -> tuple[int, str]:
    async with ClientSession() as client, client.get(base + path, headers={"X-Who": who}) as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize("path", ["/admin/v2/floodgate/secret/1", "/added/later"])
async def test_own_routes_are_for_superusers_only(base, path, refused) -> None:
    assert await asked(base, path, "super") == (200, "served")
    assert await asked(base, path, "gate for super") == (200, "served")
    for who in ("nobody", "gate", "gate for nobody", "super for nobody", "nobody for super"):
        status, text = await asked(base, path, who)
        assert (status, SUPERUSER_NEEDED in text) == (401, True), who
    assert (await asked(base, path, ""))[0] == 401
    assert refused.counts[Subject.ROUTE] == 5


async def test_listed_routes_are_open_and_dispatched_routes_are_authorized_elsewhere(
    base: str,
) -> None:
    assert await asked(base, "/openapi.json", "nobody") == (200, "served")
    assert (await asked(base, "/metrics/", ""))[0] == 200
    assert (await asked(base, "/admin/v2/brokers/ready", "nobody"))[0] == 503
    assert await asked(base, "/admin/v2/tenants", "nobody") == (200, "dispatched")


async def test_an_unknown_route_is_not_found_without_authorization(base: str) -> None:
    assert (await asked(base, "/floodgate/none", "nobody"))[0] == 404

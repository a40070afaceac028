"""Admin and lookup REST through the proxy: the broker's answer, streamed and bounded."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from ssl import Purpose, create_default_context
from typing import TYPE_CHECKING

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from proxy.service import ProxyService
from server.limits.connections import Limit
from tests.support.authentication.credentials import properties, token
from tests.support.certificates import PemFiles
from tests.support.clocks.manual_clock import ManualClock
from tests.support.peers.rest_client import RestClient, rest_client
from tests.support.processes.cluster import cluster, no_errors_logged, proxy_config, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path
    from ssl import SSLContext

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

NOBODY = "http://127.0.0.1:1"
PROFILES = ["pulsar", "floodgate"]
LARGE = b"0123456789abcdef" * 65_536


async def nothing(_: web.Request) -> web.Response:
    return web.Response(text="broker")


@asynccontextmanager
async def server(handler: Handler, tls: SSLContext | None = None) -> AsyncIterator[str]:
    app = web.Application(client_max_size=2**30)
    app.add_routes([web.route("*", "/{rest:.*}", handler)])
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def behind(
    handler: Handler, clock: ManualClock | None = None, **keys: str
) -> AsyncIterator[tuple[ProxyService, RestClient]]:
    """Run a proxy in front of a web port with ``handler``."""
    with no_errors_logged():
        async with server(handler) as url:
            config = proxy_config({"brokerWebServiceURL": url, **keys})
            async with ProxyService(config, clock) as proxy, rest_client(proxy) as rest:
                yield proxy, rest
            assert proxy.forwarder.counters.active == 0
            assert proxy.forwarder.replay.held_bytes == 0


@pytest.mark.parametrize("profile", PROFILES)
async def test_forwarded_answers_equal_the_answers_of_the_broker(profile: str) -> None:
    async with cluster(profile=profile) as parts:
        keys = {"brokerWebServiceURL": parts.broker.web_service_url, "floodgateProfile": profile}
        config = proxy_config({**keys, "brokerServiceURL": parts.broker.service_url})
        async with (
            ProxyService(config) as proxy,
            rest_client(parts.broker) as direct,
            rest_client(proxy) as through,
        ):
            for method, path, body in [
                ("PUT", "/admin/v2/tenants/acme", '{"allowedClusters":["standalone"]}'),
                ("PUT", "/admin/v2/namespaces/acme/orders", None),
                ("PUT", "/admin/v2/persistent/acme/orders/a%25b%20c", None),
                ("PUT", "/admin/v2/persistent/acme/orders/p/partitions", "3"),
            ]:
                answer = await through.ask(method, path, body)
                assert answer.status == 204, answer
            for path in [
                "/admin/v2/tenants",
                "/admin/v2/persistent/acme/orders",
                "/admin/v2/persistent/acme/orders/partitioned",
                "/admin/v2/persistent/acme/orders/p/partitions",
                "/admin/v2/persistent/acme/nowhere",
                "/admin/v2/nothing?x=a%20b",
                "/admin/v2/brokers/version",
                "/lookup/v2/topic/persistent/acme/orders/x",
                "/lookup/v2/topic/persistent/acme/orders/x/bundle",
            ]:
                straight, round_about = (
                    await direct.ask("GET", path),
                    await through.ask("GET", path),
                )
                ignored = {"Date"}
                assert (round_about.status, round_about.text) == (straight.status, straight.text)
                assert {k: v for k, v in round_about.headers.items() if k not in ignored} == {
                    k: v for k, v in straight.headers.items() if k not in ignored
                }


async def test_paths_of_the_proxy_itself_are_not_forwarded() -> None:
    async with behind(nothing) as (_, rest):
        assert (await rest.ask("GET", "/admin/v2/brokers/ready")).text == "ok"
        assert "pulsar_proxy" in (await rest.ask("GET", "/metrics/")).text
        assert (await rest.ask("GET", "/admin/v2/floodgate/limiter")).text != "broker"


async def test_without_broker_web_service_url_nothing_is_forwarded() -> None:
    async with ProxyService(proxy_config({})) as proxy, rest_client(proxy) as rest:
        answer = await rest.ask("GET", "/admin/v2/tenants")
        assert (answer.status, "brokerWebServiceURL" in answer.reason) == (404, True)


async def test_path_query_body_and_client_address_reach_the_broker() -> None:
    seen: list[web.BaseRequest] = []

    async def broker(request: web.Request) -> web.Response:
        seen.append(request)
        return web.Response(text=await request.text(), headers={"X-Pulsar-Message-Id": "1:2"})

    async with behind(broker) as (proxy, rest):
        answer = await rest.ask("POST", "/admin/v2/a%2Fb%3F?q=%20x&y", "body", "application/json")
        assert (answer.status, answer.text) == (200, "body")
        assert answer.headers["X-Pulsar-Message-Id"] == "1:2"
        assert seen[0].raw_path == "/admin/v2/a%2Fb%3F?q=%20x&y"
        assert seen[0].headers["X-Forwarded-For"] == "127.0.0.1"
        assert seen[0].headers["Host"] == URL(proxy.config.broker_web_service_url).authority
        assert proxy.forwarder.counters.answered == 1


async def test_request_and_answer_bodies_are_streamed() -> None:
    # A broker that answers each chunk before the next arrives
    async def echo(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        async for chunk in request.content.iter_any():
            await response.write(chunk)
        return response

    answered = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"a" * 10_000
        await answered.wait()
        yield b"b" * 10_000

    async with behind(echo, httpInputMaxReplayBufferSize="1000") as (proxy, _):
        url = f"{proxy.web_service_url}/admin/v2/x"
        async with aiohttp.ClientSession() as session, session.post(url, data=body()) as answer:
            first = await answer.content.readexactly(10_000)
            answered.set()
            assert first == b"a" * 10_000
            assert await answer.content.read() == b"b" * 10_000


async def test_a_slow_reader_pauses_the_broker_and_fills_no_memory_of_the_proxy() -> None:
    written = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal written
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(LARGE)
            written += len(LARGE)

    async with behind(endless) as (proxy, _):
        host, port = proxy.web_service_url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1_000)
        # A non-reading client
        writer.write(b"GET /admin/v2/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await until(lambda: written)
        before = -1
        while written > before:
            before = written
            for _ in range(2_000):
                await asyncio.sleep(0)
        # Capacity of the kernel and a few buffers
        assert written < 64 * 1024 * 1024
        writer.transport.abort()
        await until(lambda: proxy.forwarder.counters.active == 0)
        assert await reader.read(1) in (b"", b"H")


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_is_followed_with_the_body(status: int) -> None:
    async def owner(request: web.Request) -> web.Response:
        return web.Response(text=f"{request.method} {request.path} {await request.text()}")

    async with server(owner) as other:

        async def first(request: web.Request) -> web.Response:
            return web.Response(status=status, headers={"Location": f"{other}{request.path}"})

        async with behind(first, brokerProxyAllowedTargetPorts="*") as (proxy, rest):
            answer = await rest.ask("PUT", "/admin/v2/x", "a body")
            assert (answer.status, answer.text) == (200, "PUT /admin/v2/x a body")
            assert proxy.forwarder.counters.redirects == 1


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("/admin/v2/x", "more than 8 redirects"),
        ("http://198.51.100.7:8080/x", "brokerProxyAllowedHostNames"),
        ("http://127.0.0.1:22/x", "brokerProxyAllowedTargetPorts"),
        ("http://localhost:1/x", "brokerProxyAllowedTargetPorts"),
        ("https://127.0.0.1/x", "not http://host:port"),
    ],
)
async def test_a_redirect_that_is_not_allowed_is_answered_502(location: str, words: str) -> None:
    async def broker(_: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": location})

    async with behind(broker) as (proxy, rest):
        answer = await rest.ask("GET", "/admin/v2/x")
        assert answer.status == 502
        assert words in answer.reason
        assert proxy.forwarder.counters.failed == 1


async def test_a_redirected_body_above_the_replay_buffer_is_answered_502() -> None:
    async def broker(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    async with behind(broker, httpInputMaxReplayBufferSize="1000") as (_, rest):
        answer = await rest.ask("POST", "/admin/v2/x", LARGE)
        assert answer.status == 502
        assert "httpInputMaxReplayBufferSize" in answer.reason


async def test_an_unreachable_broker_is_answered_502() -> None:
    async with behind(nothing, brokerWebServiceURL=NOBODY) as (proxy, rest):
        answer = await rest.ask("GET", "/lookup/v2/topic/persistent/a/b/c")
        assert answer.status == 502
        assert "127.0.0.1:1 " in answer.reason
        assert proxy.forwarder.counters.failed == 1


async def test_a_broker_that_does_not_answer_in_time_is_answered_504() -> None:
    asked, clock = asyncio.Event(), ManualClock()

    async def silent(_: web.Request) -> web.Response:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with behind(silent, clock, httpProxyTimeout="7000") as (_, rest):
        asking = asyncio.create_task(rest.ask("GET", "/admin/v2/x"))
        await asked.wait()
        clock.advance(6.9)
        assert not asking.done()
        clock.advance(0.2)
        answer = await asking
        assert answer.status == 504
        assert "in time" in answer.reason


async def test_an_incomplete_answer_of_the_broker_is_incomplete_at_the_client() -> None:
    async def breaks_off(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"some")
        assert request.transport is not None
        request.transport.close()
        return response

    async with behind(breaks_off) as (proxy, rest):
        with pytest.raises(aiohttp.ClientError):
            await rest.ask("GET", "/admin/v2/x")
        assert proxy.forwarder.counters.failed == 1


async def test_requests_above_max_concurrent_http_requests_are_refused() -> None:
    go_on = asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        await go_on.wait()
        return web.Response(text="done")

    async with behind(slow, maxConcurrentHttpRequests="2") as (proxy, rest):
        asking = [asyncio.create_task(rest.ask("GET", "/admin/v2/x")) for _ in range(2)]
        await until(lambda: proxy.forwarder.counters.active == 2)
        refused = await rest.ask("GET", "/admin/v2/x")
        assert (refused.status, "maxConcurrentHttpRequests" in refused.reason) == (503, True)
        go_on.set()
        assert [answer.text for answer in await asyncio.gather(*asking)] == ["done", "done"]
        assert proxy.forwarder.counters.refused == 1
        assert proxy.flow.limits.refusals.counts[Limit.HTTP_CONCURRENT] == 1


async def test_a_disconnected_client_cancels_its_request_at_the_broker() -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def silent(_: web.Request) -> web.Response:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    async with behind(silent) as (proxy, rest):
        asking = asyncio.create_task(rest.ask("GET", "/admin/v2/x"))
        await asked.wait()
        asking.cancel()
        await ended.wait()
        await until(lambda: proxy.forwarder.counters.active == 0)


@pytest.mark.parametrize(
    "path",
    [
        "/admin/../metrics/",
        "/admin/v2/%2e%2E/x",
        "/admin/./x",
        "/admin/a/..%2fx",
        "/admin/a%2f..%2fx",
        "/admin/a/..%5cx",
        "/admin/a/%252e%252e/x",
        "/admin/a/%25252e./x",
        "/admin/a/..;b=c/x",
        "/admin/a/%2e%2e%3bb/x",
        "/mine/%2e%2e%2fx",
        "/mine/a/%252e./x",
    ],
)
@pytest.mark.parametrize("profile", PROFILES)
async def test_a_path_with_dot_segments_is_refused_in_any_encoding(path: str, profile: str) -> None:
    keys = {"httpReverseProxy.mine.path": "/mine", "httpReverseProxy.mine.proxyTo": NOBODY}
    async with behind(nothing, floodgateProfile=profile, **keys) as (proxy, rest):
        assert (await rest.ask("GET", path)).status in (400, 404)
        assert proxy.forwarder.counters.answered == proxy.forwarder.counters.failed == 0


async def test_a_redirect_of_another_server_is_passed_to_the_client() -> None:
    async def other(_: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": "http://127.0.0.1:6650/internal"})

    async with server(other) as url:
        keys = {"httpReverseProxy.mine.path": "/mine", "httpReverseProxy.mine.proxyTo": url}
        async with behind(nothing, **keys) as (proxy, rest):
            answer = await rest.ask("GET", "/mine/x")
            assert answer.status == 307
            assert answer.headers["Location"] == "http://127.0.0.1:6650/internal"
            assert proxy.forwarder.counters.redirects == 0


@pytest.mark.parametrize("asked_for", [False, True])
async def test_credentials_are_forwarded_to_another_server_only_if_configured(
    *, asked_for: bool
) -> None:
    seen: list[str | None] = []

    async def other(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        return web.Response()

    async with server(other) as url:
        keys = {"httpReverseProxy.mine.path": "/mine", "httpReverseProxy.mine.proxyTo": url}
        keys["httpReverseProxy.mine.forwardAuthorization"] = str(asked_for).lower()
        async with behind(other, **keys) as (proxy, _), aiohttp.ClientSession() as session:
            for path in ("/admin/v2/x", "/mine/x"):
                url = f"{proxy.web_service_url}{path}"
                async with session.get(url, headers={"Authorization": "Bearer secret"}) as answer:
                    assert answer.status == 200
    assert seen == ["Bearer secret", "Bearer secret" if asked_for else None]


@pytest.mark.parametrize(
    ("path", "forwarded"),
    [
        ("/mine/a%20b?c=1", "/to/a%20b?c=1"),
        pytest.param("/%6dine/a%2Fb?c=%20", "/to/a%2Fb?c=%20", id="encoded"),
    ],
)
async def test_a_path_of_another_server_is_forwarded_without_its_prefix(
    path: str, forwarded: str
) -> None:
    async def other(request: web.Request) -> web.Response:
        return web.Response(text=request.raw_path)

    async with server(other) as url:
        keys = {"httpReverseProxy.mine.path": "/mine", "httpReverseProxy.mine.proxyTo": f"{url}/to"}
        async with behind(nothing, **keys) as (_, rest):
            assert (await rest.ask("GET", path)).text == forwarded


async def test_the_certificate_of_another_server_is_checked_with_system_authorities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An authority that the proxy trusts for brokers
    pem = PemFiles(tmp_path)
    shown = {"brokerClientTrustCertsFilePath": pem.trust, "tlsEnabledWithBroker": "true"}
    shown |= {"brokerServiceURLTLS": "pulsar+ssl://127.0.0.1:1"}
    context = create_default_context(Purpose.CLIENT_AUTH)
    context.load_cert_chain(*pem.server)
    async with server(nothing, context) as url:
        keys = {"httpReverseProxy.mine.path": "/mine", "httpReverseProxy.mine.proxyTo": url}
        for trusts, status in ((False, 502), (True, 200)):
            if trusts:
                monkeypatch.setenv("SSL_CERT_FILE", pem.trust)
            async with (
                ProxyService(proxy_config({**shown, **keys})) as proxy,
                rest_client(proxy) as rest,
            ):
                answer = await rest.ask("GET", "/mine/x")
                assert answer.status == status


async def test_a_web_page_of_another_site_may_not_change_anything_through_the_proxy() -> None:
    async with behind(nothing) as (proxy, _), aiohttp.ClientSession() as session:
        url = f"{proxy.web_service_url}/admin/v2/tenants/x"
        async with session.put(url, headers={"Origin": "http://evil.example"}) as answer:
            assert answer.status == 403


@pytest.mark.parametrize("kept", ["1000", "1000000"])
async def test_an_unfinished_request_body_is_answered_408_after_the_timeout(kept: str) -> None:
    clock, asked = ManualClock(), asyncio.Event()

    async def broker(request: web.Request) -> web.Response:
        asked.set()
        return web.Response(text=await request.text())

    keys = {"floodgateHttpRequestTimeoutMs": "3000", "httpInputMaxReplayBufferSize": kept}
    async with behind(broker, clock, **keys) as (proxy, _):
        host, _, port = proxy.web_service_url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = "PUT /admin/v2/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n\r\n"
        writer.write(head.encode() + b"x" * 5_000)
        await until(lambda: proxy.forwarder.counters.active)
        if kept == "1000":
            await asked.wait()
        clock.advance(3.1)
        assert b" 408 " in await reader.readline()
        writer.close()
        await until(lambda: proxy.forwarder.counters.active == 0)
        assert proxy.flow.limits.refusals.counts[Limit.HTTP_TIME] == 1


async def test_a_role_can_use_at_most_half_of_the_concurrent_requests(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        await go_on.wait()
        return web.Response(text="done")

    keys = properties(tmp_path, maxConcurrentHttpRequests="4")
    async with behind(slow, **keys) as (proxy, _), aiohttp.ClientSession() as session:

        async def ask(role: str) -> tuple[int, str]:
            headers = {"Authorization": f"Bearer {token(sub=role).decode()}"}
            url = f"{proxy.web_service_url}/admin/v2/x"
            async with session.get(url, headers=headers) as answer:
                return answer.status, await answer.text()

        asking = [asyncio.create_task(ask("ann")) for _ in range(2)]
        await until(lambda: proxy.forwarder.counters.active == 2)
        status, text = await ask("ann")
        assert (status, "2 requests of 'ann' are being forwarded" in text) == (503, True)
        asking.append(asyncio.create_task(ask("bob")))
        await until(lambda: proxy.forwarder.counters.active == 3)
        go_on.set()
        assert [one for one, _ in await asyncio.gather(*asking)] == [200] * 3
        assert (await ask("ann"))[0] == 200

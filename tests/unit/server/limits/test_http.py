"""A web port refuses excessive, oversized and late requests, with the reason."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from limiter.metrics.prometheus import family
from server.http import HttpPort, Readiness, application, serve_http
from server.http_connection import HttpConnection
from server.instruments import HTTP
from server.limits.connections import Limit
from server.limits.http import UNREAD_SECONDS, HttpBounds, HttpLimits
from tests.support.clocks.manual_clock import ManualClock


class Port:
    """A web port under limits, whose ``/size`` reads a body and whose ``/wait`` waits."""

    def __init__(self, bounds: HttpBounds) -> None:
        self.clock = ManualClock()
        self.limits = HttpLimits(bounds, self.clock)
        self.port = 0
        self.waits, self.may_go = asyncio.Event(), asyncio.Event()

    async def size(self, request: web.Request) -> web.Response:
        self.waits.set()
        return web.json_response(len(await request.read()))

    async def large(self, _: web.Request) -> web.Response:
        return web.Response(body=bytes(32 << 20))

    async def wait(self, _: web.Request) -> web.Response:
        self.waits.set()
        await self.may_go.wait()
        return web.Response()

    async def opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def answer(self, request: bytes) -> tuple[int, str]:
        reader, writer = await self.opened()
        writer.write(request)
        found = await read(reader)
        writer.close()
        return found

    async def put(self, body: bytes, head: str = "") -> tuple[int, str]:
        head = head or f"Content-Length: {len(body)}"
        request = f"PUT /size HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{head}\r\n\r\n".encode()
        return await self.answer(request + body)


async def read(reader: asyncio.StreamReader) -> tuple[int, str]:
    """Return status and reason, checking that the connection closes afterwards."""
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    said = json.loads(body) if body.startswith(b"{") else {}
    return int(head.split()[1]), said.get("reason", "")


@asynccontextmanager
async def served(bounds: HttpBounds) -> AsyncIterator[Port]:
    found = Port(bounds)
    routes = [
        web.put("/size", found.size),
        web.get("/wait", found.wait),
        web.get("/large", found.large),
    ]
    app = application(CollectorRegistry(), Readiness(), routes, [found.limits.middleware()])
    server = await serve_http(app, "127.0.0.1", [HttpPort(0)], limits=found.limits)
    found.port = server.listeners[0].port
    yield found
    found.may_go.set()
    await server.close()


async def test_requests_beyond_the_rate_per_second_are_refused_as_recorded() -> None:
    async with served(HttpBounds(a_second=5.0)) as port:
        found = [await port.put(b"") for _ in range(8)]
        port.clock.advance(1.0)
        later = await port.put(b"")
        assert [status for status, _ in found] == [200] * 6 + [429] * 2
        assert found[-1][1] == "more than httpRequestsMaxPerSecond=5 requests a second"
        assert later[0] == 200
        assert port.limits.refusals.counts[Limit.HTTP_RATE] == 2


async def test_all_requests_are_counted_regardless_of_outcome() -> None:
    async with served(HttpBounds(a_second=1.0)) as port:
        one = await port.put(b"")
        unknown = await port.answer(b"GET /no HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        refused = await port.put(b"")
        assert (one[0], unknown[0], refused[0]) == (200, 404, 429)
        [sample] = family(HTTP[0], port.limits, {"cluster": "c1"}).samples
        assert (sample.name, sample.labels) == ("jetty_requests_total", {"cluster": "c1"})
        assert sample.value == 3


async def test_an_idle_connection_is_closed() -> None:
    async with served(HttpBounds(idle_seconds=0.01)) as port:
        silent, silent_writer = await port.opened()
        asked, writer = await port.opened()
        writer.write(b"PUT /size HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await silent.read() == b""
        assert (await asked.read()).startswith(b"HTTP/1.1 200")
        silent_writer.close()
        writer.close()


@pytest.mark.parametrize("reads", [True, False])
async def test_a_client_that_does_not_read_its_response_is_disconnected(
    reads: bool, monkeypatch
) -> None:
    # The answer is held until read
    is_full, pause = asyncio.Event(), HttpConnection.pause_writing

    def paused(cnx: HttpConnection) -> None:
        pause(cnx)
        is_full.set()

    monkeypatch.setattr(HttpConnection, "pause_writing", paused)
    async with served(HttpBounds()) as port:
        reader, writer = await port.opened()
        writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await is_full.wait()
        whole = await reader.read() if reads else b""
        port.clock.advance(UNREAD_SECONDS)
        with suppress(ConnectionResetError):
            whole += await reader.read()
        assert (len(whole) > 32 << 20) is reads
        assert port.limits.refusals.counts[Limit.HTTP_TIME] == (not reads)
        writer.close()


async def test_a_request_beyond_the_concurrency_limit_is_refused() -> None:
    async with served(HttpBounds(at_once=1)) as port:
        _, writer = await port.opened()
        writer.write(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        await port.waits.wait()
        status, reason = await port.put(b"")
        assert (status, reason) == (503, "more than maxConcurrentHttpRequests=1 requests at once")
        assert port.limits.refusals.counts[Limit.HTTP_CONCURRENT] == 1
        writer.close()


@pytest.mark.parametrize(("status", "without_length"), [(400, 400), (413, 411)])
async def test_a_body_too_large_or_without_a_length_is_refused(status, without_length) -> None:
    async with served(HttpBounds(body_bytes=10, body_status=status)) as port:
        found = [
            await port.put(b"x" * 10),
            await port.put(b"x" * 11),
            await port.put(b"1\r\nx\r\n0\r\n\r\n", "Transfer-Encoding: chunked"),
        ]
        assert [one for one, _ in found] == [200, status, without_length]
        assert found[1][1] == "the body has 11 bytes: httpMaxRequestSize=10"
        assert port.limits.refusals.counts[Limit.HTTP_BODY_BYTES] == 2


@pytest.mark.parametrize("request_line", [b"GET /?%s HTTP/1.1", b"GET / HTTP/1.1\r\nX: %s"])
async def test_a_header_that_is_too_long_is_refused(request_line: bytes) -> None:
    async with served(HttpBounds(header_bytes=2048)) as port:
        status, reason = await port.answer(request_line % (b"x" * 3000) + b"\r\nHost: x\r\n\r\n")
        assert status == 431
        assert reason.endswith("more than httpMaxRequestHeaderSize=2048 bytes")
        assert port.limits.refusals.counts[Limit.HTTP_HEADER_BYTES] == 1


async def test_a_body_not_received_in_time_is_refused() -> None:
    async with served(HttpBounds(seconds=30.0)) as port:
        reader, writer = await port.opened()
        writer.write(b"PUT /size HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhal")
        await port.waits.wait()
        port.clock.advance(30.1)
        assert await read(reader) == (408, "the body did not come within 30 s")
        assert port.limits.refusals.counts[Limit.HTTP_TIME] == 1
        writer.close()


@pytest.mark.parametrize("first", [b"", b"GET / HTT"])
async def test_a_client_without_a_request_in_time_receives_408_and_is_closed(first: bytes) -> None:
    async with served(HttpBounds(seconds=30.0)) as port:
        reader, writer = await port.opened()
        writer.write(first)
        await port.put(b"")
        port.clock.advance(30.1)
        assert await read(reader) == (408, "no request came within 30 s")
        writer.close()


async def test_headers_of_a_later_request_have_the_same_timeout() -> None:
    async with served(HttpBounds(seconds=30.0)) as port:
        reader, writer = await port.opened()
        writer.write(b"PUT /size HTTP/1.1\r\nHost: x\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(1)
        port.clock.advance(100.0)
        writer.write(b"GET / HTT")
        await port.put(b"")
        port.clock.advance(30.1)
        assert head.startswith(b"HTTP/1.1 200")
        assert await read(reader) == (408, "no request came within 30 s")
        writer.close()


async def test_a_connection_beyond_the_limit_receives_503_and_is_closed() -> None:
    async with served(HttpBounds(connections=1)) as port:
        _, first = await port.opened()
        first.write(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        await port.waits.wait()
        reader, second = await port.opened()
        assert await read(reader) == (503, "more than maxHttpServerConnections=1 connections")
        second.close()
        port.may_go.set()
        first.close()

"""The web port: metrics, readiness, errors."""

import asyncio
import gzip
import io
import json
import logging
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from server.errors import ListenError
from server.http import (
    MAX_REQUEST_BYTES,
    HttpPort,
    HttpServer,
    ProcessState,
    Readiness,
    RestError,
    application,
    serve_http,
)
from server.metrics.process import ProcessMetrics


async def _refuse(_: web.Request) -> web.Response:
    raise RestError(412, "Clusters do not exist")


async def _surrogate(_: web.Request) -> web.Response:
    raise RestError(412, "bad \ud800")


async def _wordy(request: web.Request) -> web.Response:
    raise RestError(412, "bad " + "\n" * int(request.query["size"]))


async def _echo_size(request: web.Request) -> web.Response:
    return web.json_response(len(await request.read()))


async def _bug(_: web.Request) -> web.Response:
    raise ZeroDivisionError


class Endpoint:
    """A running endpoint and a client."""

    def __init__(self, server: HttpServer, client: aiohttp.ClientSession, state: Readiness) -> None:
        self.server = server
        self.client = client
        self.readiness = state

    async def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, str, str]:
        url = f"http://127.0.0.1:{self.server.listeners[0].port}{path}"
        async with self.client.request(
            method, url, data=io.BytesIO(body or b""), allow_redirects=False
        ) as answer:
            content_type = answer.headers.get("Content-Type", "")
            return answer.status, await answer.text(), content_type


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    registry = CollectorRegistry()
    registry.register(ProcessMetrics("c"))
    readiness = Readiness()
    routes = [
        web.get("/refuse", _refuse),
        web.get("/surrogate", _surrogate),
        web.get("/wordy", _wordy),
        web.put("/size", _echo_size),
        web.get("/bug", _bug),
    ]
    server = await serve_http(application(registry, readiness, routes), "127.0.0.1", [HttpPort(0)])
    async with aiohttp.ClientSession() as client:
        yield Endpoint(server, client, readiness)
    await server.close()


async def test_metrics_without_a_slash_redirect_to_metrics_with_a_slash(endpoint: Endpoint) -> None:
    url = f"http://127.0.0.1:{endpoint.server.listeners[0].port}/metrics"
    async with endpoint.client.get(url, allow_redirects=False) as answer:
        assert answer.status == 301
        assert answer.headers["Location"] == "/metrics/"
        assert await answer.read() == b""


async def test_metrics_are_prometheus_text(endpoint: Endpoint) -> None:
    status, text, content_type = await endpoint.ask("GET", "/metrics/")
    assert (status, content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert 'process_resident_memory_bytes{cluster="c"} ' in text


async def test_a_process_is_ready_only_between_start_and_drain(endpoint: Endpoint) -> None:
    answers = []
    for state in ProcessState:
        endpoint.readiness.state = state
        answers.append(await endpoint.ask("GET", "/admin/v2/brokers/ready"))
    starting, ready, draining = answers
    assert (starting[0], json.loads(starting[1])) == (503, {"reason": "the process is starting"})
    assert (ready[0], ready[1]) == (200, "ok")
    assert ready[2].startswith("application/json")
    assert (draining[0], json.loads(draining[1])) == (503, {"reason": "the process is draining"})


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("GET", "/refuse", 412, "Clusters do not exist"),
        ("GET", "/nothing", 404, "Not Found"),
        ("POST", "/metrics/", 405, "Method Not Allowed"),
    ],
)
async def test_errors_are_json_with_a_reason(endpoint, method, path, status, reason) -> None:
    answered, text, content_type = await endpoint.ask(method, path)
    assert (answered, json.loads(text)) == (status, {"reason": reason})
    assert content_type.startswith("application/json")


async def test_the_content_type_of_json_has_no_character_set(endpoint: Endpoint) -> None:
    assert (await endpoint.ask("GET", "/refuse"))[2] == "application/json"


async def test_a_reason_has_a_maximum_length(endpoint: Endpoint) -> None:
    status, text, _ = await endpoint.ask("GET", "/wordy?size=1000000")
    assert status == 412
    assert json.loads(text)["reason"].endswith("\n... (1000004 characters)")
    assert len(json.loads(text)["reason"]) == 800


async def test_a_reason_may_hold_invalid_unicode(endpoint: Endpoint) -> None:
    status, text, _ = await endpoint.ask("GET", "/surrogate")
    assert (status, json.loads(text)) == (412, {"reason": "bad \ud800"})


async def test_options_reports_the_allowed_methods(endpoint: Endpoint) -> None:
    url = f"http://127.0.0.1:{endpoint.server.listeners[0].port}/size"
    async with endpoint.client.options(url) as answer:
        assert (answer.status, await answer.read()) == (200, b"")
        assert answer.headers["Allow"] == "PUT"


@pytest.mark.parametrize("head", ["Content-Length: 100", "Transfer-Encoding: chunked"])
async def test_a_client_disconnecting_within_its_request_is_not_logged_as_an_error(
    endpoint, head, caplog
) -> None:
    port = endpoint.server.listeners[0].port
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"PUT /size HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n5\r\nhal".encode())
    await writer.drain()
    await endpoint.ask("GET", "/refuse")
    with caplog.at_level(logging.INFO):
        writer.transport.abort()
        for _ in range(3):
            await endpoint.ask("GET", "/refuse")
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


MALFORMED = {
    "no HTTP": (b"GARBAGE\r\n\r\n", "malformed HTTP: Invalid method encountered: b'GARBAGE'"),
    "no colon": (
        b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
        "malformed HTTP: Invalid header token: b'Host x'",
    ),
    "another version": (b"GET / HTTP/9.9\r\n\r\n", "malformed HTTP: Bad status line:"),
    "TLS": (bytes.fromhex("16030102000100"), "malformed HTTP: Received HTTPS traffic"),
    "no address": (b"GET http://[x/ HTTP/1.1\r\n\r\n", "malformed HTTP: http://[x/"),
    "a chunk without a size": (
        b"PUT /size HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "malformed HTTP: Invalid character in chunk size: b'zz'",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
async def test_malformed_http_is_answered_with_a_reason_and_a_single_log_line(
    case, endpoint, caplog
) -> None:
    request, reason = MALFORMED[case]
    with caplog.at_level(logging.INFO):
        head, body = await raw_answer(endpoint, request)
    assert head.split()[1] == b"400"
    assert b"\r\nContent-Type: application/json\r\n" in head
    told = json.loads(body)["reason"]
    assert told.startswith(reason)
    assert not told.endswith("^")  # the parser's caret
    assert len(body) < 300
    assert head.startswith(b"HTTP/1.0") or b"\r\nConnection: close" in head
    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("INFO", None)]
    assert told.removeprefix("malformed HTTP: ") not in caplog.text  # could quote a credential


async def raw_answer(endpoint: Endpoint, request: bytes) -> tuple[bytes, bytes]:
    """Send bytes; return head and body of the answer, read until the close."""
    reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.server.listeners[0].port)
    writer.write(request)
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return head, body


async def test_a_body_is_accepted_up_to_its_maximum_size(endpoint: Endpoint) -> None:
    fitting = await endpoint.ask("PUT", "/size", b"x" * MAX_REQUEST_BYTES)
    larger = await endpoint.ask("PUT", "/size", b"x" * (MAX_REQUEST_BYTES + 1))
    assert fitting[:2] == (200, str(MAX_REQUEST_BYTES))
    assert larger[0] == 413
    assert "reason" in json.loads(larger[1])


async def test_a_compressed_body_is_not_decompressed(endpoint: Endpoint) -> None:
    packed = gzip.compress(bytes(10 * MAX_REQUEST_BYTES))
    url = f"http://127.0.0.1:{endpoint.server.listeners[0].port}/size"
    headers = {"Content-Encoding": "gzip"}

    async with endpoint.client.put(url, data=io.BytesIO(packed), headers=headers) as answer:
        assert (answer.status, await answer.text()) == (200, str(len(packed)))


async def test_an_internal_error_is_answered_500_and_logged_and_the_server_continues(
    endpoint: Endpoint, caplog
) -> None:
    with caplog.at_level(logging.ERROR):
        bug = await endpoint.ask("GET", "/bug")
    assert (bug[0], json.loads(bug[1])) == (500, {"reason": "Internal Server Error"})
    assert any(record.exc_info for record in caplog.records)
    assert (await endpoint.ask("GET", "/metrics/"))[0] == 200


async def test_a_port_in_use_is_reported(endpoint: Endpoint) -> None:
    port = endpoint.server.listeners[0].port
    with pytest.raises(ListenError, match=f"cannot listen on 127.0.0.1:{port}: the port is in use"):
        await serve_http(
            application(CollectorRegistry(), Readiness()), "127.0.0.1", [HttpPort(port)]
        )


async def test_a_server_may_be_closed_twice(endpoint: Endpoint) -> None:
    await endpoint.server.close()
    await endpoint.server.close()

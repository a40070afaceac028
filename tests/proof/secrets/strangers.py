"""Peers that send wrong requests with secrets, and users who view every page."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import struct
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import proto.PulsarApi_pb2 as pb
from client.authentication.authentication import AuthenticationToken
from client.client import Client
from client.exceptions import PulsarException
from limiter.clock import LoopClock, deadline

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.places.server_process import ServerProcess
    from tests.proof.secrets.planted import Planted

    Say = Callable[[str, bytes | str], None]

_PAGES = (
    "/", "/metrics/", "/openapi.json", "/floodgate/", "/status.html", "/admin/v2/tenants",
    "/admin/v2/brokers/configuration/runtime", "/admin/v2/brokers/configuration/values",
    "/admin/v2/brokers/configuration", "/admin/v2/brokers/internal-configuration",
    "/admin/v2/brokers/health", "/admin/v2/floodgate/faults", "/admin/v2/floodgate/connections",
    "/admin/v2/floodgate/limiter", "/admin/v2/broker-stats/metrics", "/admin/v2/worker/cluster",
    "/admin/v2/persistent/public/default", "/proxy-stats/connections", "/proxy-stats/topics",
)  # fmt: skip
FAILING = "raising"
"""The namespace whose listing ends in a stack trace."""
_ANSWER_SECONDS = 5.0
_SILENCE_SECONDS = 0.5


async def say_wrong_things(
    planted: Planted, broker: ServerProcess, proxy: ServerProcess, say: Say
) -> None:
    """Send wrong requests to both servers, and record the answers."""
    for server in (broker, proxy):
        _watch_commands(planted, server)
        for name, command in _commands(planted).items():
            say(f"{server.module}: {name}", await _answers(server, _frame(command)))
        for name, data in _garbage(planted).items():
            say(f"{server.module}: {name}", await _answers(server, data))
        _requests(planted, server, say)
    await _use(planted, proxy, say)


async def _use(planted: Planted, proxy: ServerProcess, say: Say) -> None:
    """Use the proxy for longer than a token's lifetime, with a renewed and an expired token."""
    late = AuthenticationToken(planted.token("soon", 2))
    renewed = AuthenticationToken(lambda: planted.token("renewed", 2))
    for name, shown in (("soon over", late), ("renewed", renewed)):
        async with Client(proxy.service_url, shown, operation_timeout_seconds=2) as client:
            try:
                async with await client.create_producer("public/default/one") as producer:
                    _watch_commands(planted, proxy)
                    for _ in range(4):
                        await producer.send(b"x")
                        await asyncio.sleep(1)
                    await client.get_topic_partitions("public/default/other")
                    say(f"commands, {name}", _last_commands(planted, proxy))
            except PulsarException as error:
                say(f"the client, {name}", f"{error!r} {error} {client!r} {shown!r}")


def _commands(planted: Planted) -> dict[str, pb.BaseCommand]:
    words, good = planted.words, planted.tokens["admin"].encode()
    shown = {
        "garbage for a token": ("token", words["in-garbage"].encode()),
        "a token that is over": ("token", planted.tokens["late"].encode()),
        "a token and more": ("token", good + b"x"),
        "a wrong password": ("basic", f"ann:{words['wrong-password']}".encode()),
        "a password for an unknown name": ("basic", f"zed:{words['wrong-password']}".encode()),
        "a password alone": ("basic", words["wrong-password"].encode()),
        "a secret for a method": (words["in-garbage"], b""),
        "right": ("token", good),
        "a right password": ("basic", f"ann:{words['password']}".encode()),
    }
    found = {}
    for name, (method, data) in shown.items():
        command = pb.BaseCommand(type=pb.BaseCommand.CONNECT)
        command.connect.client_version = "stranger"
        command.connect.protocol_version = 21
        command.connect.auth_method_name = method
        command.connect.auth_data = data
        found[name] = command
    behind = pb.BaseCommand()
    behind.CopyFrom(found["right"])
    behind.connect.auth_data = planted.tokens["gate"].encode()
    behind.connect.original_principal = "ann"
    behind.connect.original_auth_method = "token"
    behind.connect.original_auth_data = words["original"]
    found["a client's wrong token behind a proxy"] = behind
    again = pb.BaseCommand(type=pb.BaseCommand.AUTH_RESPONSE)
    again.authResponse.response.auth_method_name = "token"
    again.authResponse.response.auth_data = words["in-garbage"].encode()
    found["an answer that nobody asked for"] = again
    return found


def _garbage(planted: Planted) -> dict[str, bytes]:
    """Return bytes that are not a command, or an unexpected command."""
    secret = planted.tokens["admin"].encode()
    connect = _frame(_commands(planted)["right"])
    lookup = pb.BaseCommand(type=pb.BaseCommand.LOOKUP)
    lookup.lookupTopic.topic = "public/default/one"
    lookup.lookupTopic.request_id = 1
    lookup.lookupTopic.original_auth_data = planted.words["original"]
    listing = pb.BaseCommand(type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE)
    listing.getTopicsOfNamespace.namespace = f"public/{FAILING}"
    listing.getTopicsOfNamespace.request_id = 1
    listing.getTopicsOfNamespace.properties.add(key="a", value="b")
    again = _frame(_commands(planted)["an answer that nobody asked for"])
    return {
        "HTTP on the binary port": b"GET / HTTP/1.1\r\nAuthorization: Bearer %b\r\n\r\n" % secret,
        "a frame of no command": struct.pack(">II", len(secret) + 4, len(secret)) + secret,
        "a command cut short": connect[: len(connect) // 2] + b"\xff" * (len(connect) // 2),
        "a lookup before CONNECT": _frame(lookup),
        "a lookup with credentials": connect + _frame(lookup),
        "CONNECT twice": connect + connect,
        "a listing that breaks": connect + _frame(listing),
        "a wrong answer to no challenge": connect + again,
    }


def _frame(command: pb.BaseCommand) -> bytes:
    body = command.SerializeToString()
    return struct.pack(">II", len(body) + 4, len(body)) + body


async def _answers(server: ServerProcess, data: bytes) -> bytes:
    """Return a server's answers to bytes within half a second."""
    parts = urlsplit(server.service_url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(data)
    found = b""
    try:
        async with deadline(LoopClock(), _SILENCE_SECONDS):
            while more := await reader.read(65536):
                found += more
    except (TimeoutError, ConnectionError):
        pass
    writer.close()
    return found


def _requests(planted: Planted, server: ServerProcess, say: Say) -> None:
    words = planted.words
    query, header = words["in-a-query"], words["in-a-header"]
    good = {"Authorization": f"Bearer {planted.tokens['admin']}"}
    for name, method, path, headers in (
        ("a token in a query", "GET", f"/admin/v2/tenants?token={query}", {}),
        ("a token in a query, known", "GET", f"/admin/v2/tenants?token={query}", good),
        ("an unknown path", "GET", f"/nowhere?access_token={query}", good),
        ("a wrong number", "GET", f"/admin/v2/brokers/backlog?x={query}", good),
        ("a wrong token", "GET", "/admin/v2/tenants", {"Authorization": f"Bearer {header}"}),
        ("a wrong scheme", "GET", "/admin/v2/tenants", {"Authorization": header}),
        ("a broken password", "GET", "/admin/v2/tenants", {"Authorization": f"Basic {header}"}),
        ("a wrong method", "GET", "/admin/v2/tenants", {"X-Pulsar-Auth-Method-Name": header}),
        ("a cookie", "GET", "/admin/v2/tenants", {"Cookie": f"session={header}"}),
        ("an original client", "GET", "/admin/v2/tenants", {**good, "X-Original-Auth": header}),
        ("a request id", "GET", "/nowhere", {**good, "X-Request-Id": "plain"}),
        ("no JSON", "PUT", "/admin/v2/tenants/x", good),
    ):
        say(f"{server.module}: {name}", _asked(server, method, path, headers))


def ask_pages(planted: Planted, server: ServerProcess, say: Say) -> None:
    """View every page of a superuser, and connections' last commands."""
    good = {"Authorization": f"Bearer {planted.tokens['admin']}"}
    for path in _PAGES:
        say(f"{server.module}: {path}", _asked(server, "GET", path, good))
    say(f"{server.module}: last commands", _last_commands(planted, server))


def _last_commands(planted: Planted, server: ServerProcess) -> bytes:
    good = {"Authorization": f"Bearer {planted.tokens['admin']}"}
    paths = (
        f"/admin/v2/floodgate/connections/{number}/commands"
        for number in _connections(planted, server)
    )
    return b"\n".join(_asked(server, "GET", path, good) for path in paths)


def _watch_commands(planted: Planted, server: ServerProcess) -> None:
    good = {"Authorization": f"Bearer {planted.tokens['admin']}"}
    for number in _connections(planted, server):
        _asked(server, "PUT", f"/admin/v2/floodgate/connections/{number}/commands", good)


def _connections(planted: Planted, server: ServerProcess) -> list[str]:
    good = {"Authorization": f"Bearer {planted.tokens['admin']}"}
    text = _asked(server, "GET", "/admin/v2/floodgate/connections", good).decode()
    return re.findall(r'"connection": ?(\d+)', text)


def _asked(server: ServerProcess, method: str, path: str, headers: dict[str, str]) -> bytes:
    """Return status, headers and body of an answer."""
    parts = urlsplit(server.web_url)
    connection = http.client.HTTPConnection(
        parts.hostname or "", parts.port, timeout=_ANSWER_SECONDS
    )
    body = json.dumps([]) if method == "PUT" else None
    try:
        connection.request(method, path, body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        head = json.dumps(answer.getheaders())
        return f"{answer.status} {head} ".encode() + answer.read()
    except (OSError, http.client.HTTPException) as error:
        return repr(error).encode()
    finally:
        connection.close()

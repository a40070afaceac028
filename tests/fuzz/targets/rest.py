"""The broker's REST, through its own HTTP parser and middlewares, without a socket.

An input: requests in order (method, path, headers and body), or raw bytes.
"""

import random
import struct
from functools import cache

from broker.admin.routes import endpoints
from tests.fuzz.driving.broker_world import BrokerWorld
from tests.fuzz.inputs.rest_values import BODIES, HEADERS, METHODS, PATHS, QUERIES, VALUES
from tests.fuzz.rules import BrokenRuleError

FIGURES = {"requests": 0, "valid": 0, "not found": 0, "errors told": 0}
RAW = 0x80
MOST_REQUESTS = 3
LONGEST_SECONDS = 200.0
_worlds: list[BrokerWorld] = []


def one_input(data: bytes) -> None:
    """Send requests on a connection; each gets an answer, and no answer is an internal error."""
    world = _world()
    with world.loop.running():
        peer = world.peer("webServicePort")
        for request in requests(data):
            FIGURES["requests"] += 1
            before = len(peer.transport.received)
            peer.say(request)
            if len(peer.transport.received) == before and not data[0] & RAW:
                world.loop.pass_time(LONGEST_SECONDS)
            ended = peer.transport.is_closing()
            _check(
                bytes(peer.transport.received[before:]), may_be_none=ended or bool(data[0] & RAW)
            )
            if ended:
                break
        peer.breaks()
        world.check()


def _check(answer: bytes, *, may_be_none: bool) -> None:
    """Check that an answer's status is no internal error."""
    if not answer:
        if may_be_none:
            return
        raise BrokenRuleError("a request is not answered")
    status = int(answer[9:12]) if answer.startswith(b"HTTP/") else 0
    if not status or b"Internal Server Error" in answer.partition(b"\r\n\r\n")[2]:
        raise BrokenRuleError(f"answered with {status}, without a word")
    FIGURES["errors told"] += status == 500
    FIGURES["valid"] += status < 400
    FIGURES["not found"] += status == 404


def requests(data: bytes) -> list[bytes]:
    """Return the requests of an input as HTTP."""
    if data and data[0] & RAW:
        return [data[1:]]
    found: list[bytes] = []
    at = 1
    while at + 4 <= len(data) and len(found) < MOST_REQUESTS:
        method, headers, path_size, body_size = data[at : at + 4]
        at += 4
        path, at = data[at : at + path_size], at + path_size
        body, at = data[at : at + body_size], at + body_size
        found.append(_http(method, headers, path, body))
    return found


def _http(method: int, headers: int, path: bytes, body: bytes) -> bytes:
    lines = [
        METHODS[method % len(METHODS)].encode() + b" /" + path.lstrip(b"/") + b" HTTP/1.1",
        b"Host: 127.0.0.1:8080",
        *HEADERS[headers % len(HEADERS)],
    ]
    if body:
        lines.append(b"Content-Length: %d" % len(body))
    # A line end in a path would begin another header; raw bytes cover line ends.
    return (
        b"\r\n".join(line.replace(b"\r", b"").replace(b"\n", b"") for line in lines)
        + b"\r\n\r\n"
        + body
    )


def renewed() -> None:
    """Forget the broker: the next input starts a new broker."""
    for world in _worlds:
        world.loop.abandon()
    _worlds.clear()


def _world() -> BrokerWorld:
    if not _worlds:
        _worlds.append(
            BrokerWorld(forceDeleteNamespaceAllowed="true", forceDeleteTenantAllowed="true")
        )
    return _worlds[0]


# -- inputs -----------------------------------------------------------------------------------


@cache
def templates() -> list[tuple[str, str]]:
    """Return method and path of every endpoint, with names in braces."""
    found = {(one.method, one.path) for one in endpoints(_world().service._admin_context())}
    return sorted(found | {("GET", path) for path in PATHS})


def _filled(template: str, choices: random.Random) -> str:
    parts = template.split("{")
    out = parts[0]
    for part in parts[1:]:
        name, _, rest = part.partition("}")
        name = name.partition(":")[0]
        known = VALUES.get(name, VALUES[""])
        out += choices.choice(known if choices.random() < 0.93 else VALUES["odd"]) + rest
    if choices.random() < 0.25:
        out += "?" + "&".join(choices.choices(QUERIES, k=choices.choice((1, 1, 2))))
    return out


def _request(method: str, path: str, headers: int, body: bytes) -> bytes:
    text, body = path.encode()[:255], body[:255]
    return struct.pack("BBBB", METHODS.index(method), headers, len(text), len(body)) + text + body


def _made(choices: random.Random) -> bytes:
    method, template = choices.choice(templates())
    if choices.random() < 0.05:
        method = choices.choice(METHODS)
    bodiless = method in ("GET", "HEAD", "DELETE") and choices.random() < 0.8
    body = b"" if bodiless else choices.choice(BODIES)
    headers = choices.choice((0, 0, 1, 1, 1, 1, choices.randrange(len(HEADERS))))
    return _request(
        method, _filled(template, choices), 1 if body and not headers else headers, body
    )


def seeds() -> list[bytes]:
    """Return a request for each endpoint, with a body where allowed."""
    choices = random.Random(1)
    each = [
        b"\0" + _request(method, _filled(path, choices), 1, b"" if method == "GET" else BODIES[0])
        for method, path in templates()
    ]
    raw = (
        b"GET /metrics/ HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    )
    return [*each, bytes((RAW,)) + raw, bytes((RAW,)) + b"GET / HTTP/1.0\r\n\r\n"]


def mutated(data: bytes, most_bytes: int, seed: int) -> bytes:
    """Prepend or mutate a request; occasionally mutate bytes."""
    import atheris

    choices = random.Random(seed)
    if not data or data[0] & RAW or choices.random() < 0.25:
        return bytes(atheris.Mutate(data, most_bytes))
    if choices.random() < 0.6:
        return b"\0" + _made(choices)
    if len(data) > 5 and choices.random() < 0.4:
        # The same request with another body.
        path_size = data[3]
        path = data[5 : 5 + path_size]
        body = choices.choice(BODIES)[:255]
        return (data[:4] + bytes((len(body),)) + path + body)[:most_bytes]
    return (b"\0" + _made(choices) + data[1:])[:most_bytes]

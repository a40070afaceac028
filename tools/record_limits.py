"""Record a real broker's behaviour at its limits: ``record_limits.py BINARY_PORT WEB_PORT``.

Start a local broker with the keys in KEYS first. Prints JSON lines, stored in
tests/data/limits.jsonl.
"""

from __future__ import annotations

import http.client
import json
import socket
import sys
import time
from collections.abc import Iterator  # noqa: TC003 - of a script
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import proto.PulsarApi_pb2 as pb  # noqa: E402 - the path comes first

KEYS = {
    "brokerMaxConnections": "15",
    "brokerMaxConnectionsPerIp": "8",
    "httpRequestsLimitEnabled": "true",
    "httpRequestsMaxPerSecond": "5",
    "httpMaxRequestSize": "1000",
    "httpMaxRequestHeaderSize": "2048",
}
_ADDRESSES = ("127.0.0.1",) * 9 + ("127.0.0.2",) * 8
_TENANTS = "/admin/v2/tenants"
_JSON = {"Content-Type": "application/json"}
_PAUSE_SECONDS = 1.5
"""Pause after which the rate limit is full again."""


def main() -> None:
    """Print a JSON line with the broker's answer to each case."""
    binary, web = map(int, sys.argv[1:])
    print(json.dumps({"case": "keys", "keys": KEYS}))
    for case, found in (*_connections(binary), *_http(web)):
        print(json.dumps({"case": case, **found}))


def _connections(port: int) -> Iterator[tuple[str, dict[str, object]]]:
    kept = []
    for address in _ADDRESSES:
        peer = socket.create_connection(("127.0.0.1", port), 5, (address, 0))
        kept.append(peer)
        own = f"{address}:{peer.getsockname()[1]}"
        yield f"connection {len(kept)} from {address}", _refusal(peer, own)
    for peer in kept:
        peer.close()


def _refusal(peer: socket.socket, own: str) -> dict[str, object]:
    peer.settimeout(0.3)
    try:
        data = peer.recv(4096)
    except TimeoutError:
        return {"refused": None}
    command = pb.BaseCommand()
    command.ParseFromString(data[8 : 8 + int.from_bytes(data[4:8])])
    error = command.error
    text = error.message.replace(own, "CLIENT")
    return {
        "refused": pb.ServerError.Name(error.error),
        "message": text,
        "closed": not peer.recv(1),
    }


def _http(port: int) -> Iterator[tuple[str, dict[str, object]]]:
    def asked(method: str, path: str, body: bytes | None, headers: dict[str, str]) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        chunked = headers.get("Transfer-Encoding") == "chunked"
        content = iter([body]) if chunked and body else body
        connection.request(method, path, content, headers, encode_chunked=chunked)
        return connection.getresponse().status

    small, chunked = b'{"allowedClusters":["standalone"]}', {"Transfer-Encoding": "chunked"}
    for case, request in (
        ("a body of 1000 bytes", ("PUT", f"{_TENANTS}/a", small.ljust(1000), _JSON)),
        ("a body of 1001 bytes", ("PUT", f"{_TENANTS}/b", small.ljust(1001), _JSON)),
        ("a body without a length", ("PUT", f"{_TENANTS}/c", small, _JSON | chunked)),
        ("a header of 3000 bytes", ("GET", _TENANTS, None, {"X-Long": "x" * 3000})),
        ("a line of 3000 bytes", ("GET", f"{_TENANTS}?x={'x' * 3000}", None, {})),
    ):
        time.sleep(_PAUSE_SECONDS)
        yield case, {"status": asked(*request)}
    for path in (_TENANTS, "/metrics/", "/status.html"):
        time.sleep(_PAUSE_SECONDS)
        found = [asked("GET", path, None, {}) == 429 for _ in range(8)]
        yield f"eight requests of {path}", {"refused": found}


if __name__ == "__main__":
    main()

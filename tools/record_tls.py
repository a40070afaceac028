"""Record the TLS behaviour of a broker: its addresses, versions and accepted certificates.

    record_tls.py FOLDER                                        writes certificates to FOLDER
    record_tls.py FOLDER BINARY BINARY_TLS WEB WEB_TLS          queries the broker on these ports

Start a local broker with KEYS in between. Prints JSON lines, stored in tests/data/tls.jsonl; a test
sends the same requests to Floodgate's broker.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import sys
from collections.abc import Iterator  # noqa: TC003 - of a script
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

import proto.PulsarApi_pb2 as pb  # noqa: E402 - the path comes first
from tests.support.certificates import PemFiles  # noqa: E402

KEYS = {
    "brokerServicePortTls": "BINARY_TLS",
    "webServicePortTls": "WEB_TLS",
    "tlsCertificateFilePath": "FOLDER/server.pem",
    "tlsKeyFilePath": "FOLDER/server.key",
    "tlsTrustCertsFilePath": "FOLDER/ca.pem",
}
_TOPIC = "persistent://public/default/recorded"
_LOOKUP = "/lookup/v2/topic/persistent/public/default/recorded"
_PATHS = (
    _LOOKUP,
    "/admin/v2/brokers/leaderBroker",
    "/admin/v2/clusters/standalone",
)
_VERSIONS = ("TLSv1", "TLSv1_1", "TLSv1_2", "TLSv1_3")
_PATIENCE_SECONDS = 10


class Ports(NamedTuple):
    """The ports of the broker whose TLS behaviour is recorded."""

    binary: int
    binary_tls: int
    web: int
    web_tls: int


class Certificates(NamedTuple):
    """The certificate files of a client: trusted ones, its own, and untrusted ones."""

    trust: str
    known: tuple[str, str]
    stranger: tuple[str, str]

    @classmethod
    def in_folder(cls, folder: Path) -> Certificates:
        """Return the certificate files that :func:`write` has written to a folder."""
        pairs = [(str(folder / f"{name}.pem"), str(folder / f"{name}.key")) for name in _CLIENTS]
        return cls(str(folder / "ca.pem"), *pairs)


_CLIENTS = ("known", "stranger")


def write(folder: Path) -> PemFiles:
    """Write the certificates of a server, of a trusted client, and of an untrusted client."""
    pem = PemFiles(folder)
    pem.pair(_CLIENTS[0], _CLIENTS[0])
    PemFiles(folder, "other").pair(_CLIENTS[1], _CLIENTS[1])
    # The second authority has overwritten the first authority's server files.
    pem.server = pem.pair("server", "127.0.0.1", "localhost")
    return pem


def answers(ports: Ports, certificates: Certificates) -> Iterator[dict[str, Any]]:
    """Query a broker, and yield its answers, in which port names replace port numbers."""
    context = ssl.create_default_context(cafile=certificates.trust)
    names = {str(port): name.upper() for name, port in ports._asdict().items()}
    for path in _PATHS:
        for by in ("web", "web_tls"):
            tls = context if by == "web_tls" else None
            yield {"asked": path, "by": by, **_told(_get(getattr(ports, by), path, tls), names)}
    for by in ("binary", "binary_tls"):
        tls = context if by == "binary_tls" else None
        found = _lookup(getattr(ports, by), tls)
        yield {"asked": "LOOKUP", "by": by, **_told(found, names)}
    for by in ("binary_tls", "web_tls"):
        for version in _VERSIONS:
            yield {"version": version, "by": by, "taken": _takes(getattr(ports, by), version)}
        for who in ("nobody", *_CLIENTS):
            shown = None if who == "nobody" else getattr(certificates, who)
            taken = _shows(getattr(ports, by), by, certificates.trust, shown)
            yield {"certificate of": who, "by": by, "taken": taken}


def _told(found: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    text = json.dumps(found, sort_keys=True)
    for port, name in names.items():
        text = text.replace(f":{port}", f":{name}")
    told: dict[str, Any] = json.loads(text.replace("localhost:", "127.0.0.1:"))
    return {"told": told}


def _get(port: int, path: str, tls: ssl.SSLContext | None) -> dict[str, Any]:
    if tls is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_SECONDS)
    else:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=_PATIENCE_SECONDS, context=tls
        )
    try:
        connection.request("GET", path)
        found: dict[str, Any] = json.loads(connection.getresponse().read())
        return found
    finally:
        connection.close()


def _connected(port: int, tls: ssl.SSLContext | None) -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", port), _PATIENCE_SECONDS)
    return peer if tls is None else tls.wrap_socket(peer, server_hostname="127.0.0.1")


def _lookup(port: int, tls: ssl.SSLContext | None) -> dict[str, Any]:
    with _connected(port, tls) as peer:
        _greet(peer)
        lookup = pb.CommandLookupTopic(topic=_TOPIC, request_id=1)
        _send(peer, pb.BaseCommand(type=pb.BaseCommand.LOOKUP, lookupTopic=lookup))
        found = _received(peer).lookupTopicResponse
    return {
        "response": pb.CommandLookupTopicResponse.LookupType.Name(found.response),
        "brokerServiceUrl": found.brokerServiceUrl,
        "brokerServiceUrlTls": found.brokerServiceUrlTls,
        "authoritative": found.authoritative,
        "proxy_through_service_url": found.proxy_through_service_url,
    }


def _greet(peer: socket.socket) -> pb.BaseCommand:
    connect = pb.CommandConnect(client_version="recorder", protocol_version=21)
    _send(peer, pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect))
    return _received(peer)


def _send(peer: socket.socket, command: pb.BaseCommand) -> None:
    body = command.SerializeToString()
    peer.sendall((len(body) + 4).to_bytes(4) + len(body).to_bytes(4) + body)


def _received(peer: socket.socket) -> pb.BaseCommand:
    frame = _exactly(peer, int.from_bytes(_exactly(peer, 4)))
    command = pb.BaseCommand()
    command.ParseFromString(frame[4 : 4 + int.from_bytes(frame[:4])])
    return command


def _exactly(peer: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = peer.recv(size - len(found))
        if not more:
            raise ConnectionResetError
        found += more
    return found


def _takes(port: int, version: str) -> bool:
    """Return True if a port accepts connections with a given TLS version."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    # Otherwise OpenSSL itself would not offer old versions.
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    try:
        with _connected(port, context):
            return True
    except OSError:
        return False


def _shows(port: int, by: str, trust: str, shown: tuple[str, str] | None) -> bool:
    """Return True if a client that shows a certificate, or none, gets an answer."""
    context = ssl.create_default_context(cafile=trust)
    if shown is not None:
        context.load_cert_chain(*shown)
    try:
        if by == "web_tls":
            return bool(_get(port, _LOOKUP, context))
        with _connected(port, context) as peer:
            return _greet(peer).type == pb.BaseCommand.CONNECTED
    except (OSError, http.client.HTTPException):
        return False


def main() -> None:
    """Write certificates or, given the ports of a broker, query it and print the answers."""
    folder, *ports = sys.argv[1:]
    if not ports:
        write(Path(folder))
        return
    for line in answers(Ports(*map(int, ports)), Certificates.in_folder(Path(folder))):
        print(json.dumps(line))


if __name__ == "__main__":
    main()

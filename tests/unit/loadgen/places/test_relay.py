"""A link is cut and restored, or limited to a rate."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from loadgen.errors import UsageError
from loadgen.places.relay import Relay


@contextmanager
def echo() -> Iterator[str]:
    """Run a server that echoes one connection."""

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            while data := connection.recv(65_536):
                connection.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"pulsar://127.0.0.1:{listening.getsockname()[1]}"
        thread.join()


def connect(relay: Relay) -> socket.socket:
    host, _, port = relay.service_url.removeprefix("pulsar://").partition(":")
    return socket.create_connection((host, int(port)), timeout=10)


def received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += connection.recv(65_536)
    return data


def test_bytes_sent_over_a_cut_link_arrive_once_the_link_is_restored() -> None:
    with echo() as url, Relay(url, 1) as relay, connect(relay) as connection:
        connection.sendall(b"before")
        assert received(connection, 6) == b"before"
        relay.cut()
        connection.sendall(b"behind")
        connection.settimeout(0.1)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        relay.mend()
        connection.settimeout(10)
        assert received(connection, 6) == b"behind"


def test_a_slowed_link_passes_bytes_at_its_rate() -> None:
    with echo() as url, Relay(url, 1) as relay, connect(relay) as connection:
        relay.slow(1_000_000)
        begun = time.perf_counter()
        connection.sendall(bytes(100_000))
        assert len(received(connection, 100_000)) == 100_000
    # In both directions.
    assert time.perf_counter() - begun >= 0.19


def test_a_close_by_a_peer_closes_the_other_side() -> None:
    with echo() as url, Relay(url, 1) as relay, connect(relay) as connection:
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""


def test_a_relay_to_an_unreachable_server_closes_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with Relay(f"pulsar://127.0.0.1:{port}", 1) as relay, connect(relay) as connection:
        assert connection.recv(1) == b""


def test_a_relay_of_a_tls_connection_is_refused() -> None:
    with pytest.raises(UsageError, match="a TLS link"):
        Relay("pulsar+ssl://127.0.0.1:1", 1)

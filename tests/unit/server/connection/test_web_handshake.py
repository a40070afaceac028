"""A web port's connection before the TLS handshake."""

import asyncio
import os
import ssl
from typing import Any

from server.connection.web_handshake import ListenerTls, WebHandshake
from server.tls.handshakes import TlsHandshakes
from tests.support.clocks.manual_clock import ManualClock


class Plain(asyncio.Transport):
    """A transport without a socket to take: descriptors are exhausted."""

    def __init__(self) -> None:
        super().__init__({"peername": ("1.2.3.4", 5), "socket": self})
        self.ended = False

    def fileno(self) -> int:
        return 1

    def abort(self) -> None:
        self.ended = True


def no_more(_descriptor: int) -> Any:
    raise OSError(24, os.strerror(24))


def test_a_connection_without_a_free_descriptor_is_closed_and_logged(monkeypatch, caplog) -> None:
    handshakes = TlsHandshakes(ManualClock(), 10.0)
    tls = ListenerTls(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), handshakes)
    monkeypatch.setattr(os, "dup", no_more)
    plain = Plain()
    WebHandshake(asyncio.Protocol, tls).connection_made(plain)
    assert plain.ended
    assert handshakes.under_way == 0
    assert caplog.messages == ["closing 1.2.3.4:5: Too many open files"]

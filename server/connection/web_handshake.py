"""Connections of a web port while their TLS handshake is in progress.

The event loop's TLS does not expose handshakes in progress: a drain could not end them. So each
connection is accepted without TLS and handed to the loop's TLS in a task, which can be cancelled.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from server.tls.handshakes import TlsHandshakes

logger = logging.getLogger(__name__)

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of 0 seconds: closing resets the connection."""


@dataclass(frozen=True, slots=True)
class ListenerTls:
    """TLS settings of a listener whose connections use the event loop's TLS.

    Attributes:
        context: The TLS rules and certificates.
        handshakes: The unfinished handshakes, and their deadline.
    """

    context: ssl.SSLContext
    handshakes: TlsHandshakes


class WebHandshake(asyncio.Protocol):
    """An accepted connection whose TLS handshake is in progress.

    Args:
        factory: Makes the protocol of the connection once TLS is established.
        tls: Rules, certificates, and the handshake counters.

    Attributes:
        peer: The client's address.
    """

    def __init__(self, factory: Callable[[], asyncio.BaseProtocol], tls: ListenerTls) -> None:
        self._factory = factory
        self._tls = tls
        self.peer = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the socket over before its transport reads, and start the TLS handshake."""
        # uvloop's are not asyncio.Transport by name; even if paused here, they would read.
        plain = cast("asyncio.Transport", transport)
        name = plain.get_extra_info("peername")
        self.peer = f"{name[0]}:{name[1]}" if name else "a disconnected client"
        try:
            self._socket = socket.socket(fileno=os.dup(plain.get_extra_info("socket").fileno()))
        except OSError as error:
            logger.warning("closing %s: %s", self.peer, error.strerror)
            return
        finally:
            plain.abort()
        self._shaking = asyncio.get_running_loop().create_task(self._shake())
        self._shaking.add_done_callback(self._ended)
        self._tls.handshakes.began(self)

    def abort(self) -> None:
        """Cancel the handshake, which closes the connection."""
        self._shaking.cancel()

    def reset(self) -> None:
        """Cancel the handshake, and close with a TCP reset, to free the kernel's buffers."""
        # It may have ended in this turn.
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.abort()

    async def _shake(self) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(
            self._factory,
            self._socket,
            ssl=self._tls.context,
            # ``handshakes`` enforces the deadline earlier.
            ssl_handshake_timeout=2 * self._tls.handshakes.seconds,
            ssl_shutdown_timeout=self._tls.handshakes.seconds,
        )

    def _ended(self, shaking: asyncio.Task[None]) -> None:
        # Breaks the reference cycle, which would keep OpenSSL's memory until a garbage collection.
        del self._shaking
        error = None if shaking.cancelled() else shaking.exception()
        if error is None and not shaking.cancelled():
            self._tls.handshakes.finished(self)
            return
        self._socket.close()
        self._tls.handshakes.lost(self)
        if error is not None:
            logger.debug("no TLS with %s: %s", self.peer, error)

"""Connections of a web port until their TLS handshake is finished.

The event loop speaks TLS there, and tells nobody of a handshake under way: a drain could not end
it. So each is accepted plainly and handed to the loop's TLS as a task, which can be cancelled.
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
"""SO_LINGER of 0 seconds: what closes the connection is a reset."""


@dataclass(frozen=True, slots=True)
class ListenerTls:
    """TLS that the event loop speaks on all connections of a listener.

    Attributes:
        context: Its rules and certificates.
        handshakes: Where those that are not finished stand, and how long each may take.
    """

    context: ssl.SSLContext
    handshakes: TlsHandshakes


class WebHandshake(asyncio.Protocol):
    """One connection that was accepted.

    Args:
        factory: Makes the protocol that is spoken within TLS.
        tls: Rules, certificates, and where handshakes are counted.

    Attributes:
        peer: The client's address.
    """

    def __init__(self, factory: Callable[[], asyncio.BaseProtocol], tls: ListenerTls) -> None:
        self._factory = factory
        self._tls = tls
        self.peer = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the socket from the plain transport before it reads, and begin."""
        # uvloop's are no asyncio.Transport by name; paused here, it reads all the same.
        plain = cast("asyncio.Transport", transport)
        name = plain.get_extra_info("peername")
        self.peer = f"{name[0]}:{name[1]}" if name else "somebody who has left"
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
        """End the handshake."""
        self._shaking.cancel()

    def reset(self) -> None:
        """End it, and let the kernel keep nothing of the connection."""
        # It may have ended in this very turn.
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.abort()

    async def _shake(self) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(
            self._factory,
            self._socket,
            ssl=self._tls.context,
            # It is cut off before: who counts handshakes keeps their time.
            ssl_handshake_timeout=2 * self._tls.handshakes.seconds,
            ssl_shutdown_timeout=self._tls.handshakes.seconds,
        )

    def _ended(self, shaking: asyncio.Task[None]) -> None:
        # With it goes all that OpenSSL holds: kept, the two would wait for the garbage collector.
        del self._shaking
        error = None if shaking.cancelled() else shaking.exception()
        if error is None and not shaking.cancelled():
            self._tls.handshakes.finished(self)
            return
        self._socket.close()
        self._tls.handshakes.lost(self)
        if error is not None:
            logger.debug("no TLS with %s: %s", self.peer, error)

"""TLS as bytes in, bytes out: ssl.MemoryBIO and SSLObject, without a socket or a loop.

A TLS transport of asyncio or uvloop hides how much of an entry is still on its way (measured: a
write of 50 MB to a peer that reads nothing shows an empty buffer). Encrypting above the plain
transport keeps an entry's end as exact as without TLS: its ciphertext is with the kernel.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Any

from proto.errors import RemoteProtocolError

READ_BYTES = 262_144


class TlsLayer:
    """One side of a TLS connection.

    Args:
        context: Certificates and rules.
        server_side: Whether this side accepts.
        server_hostname: Whose certificate a client expects.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        *,
        server_side: bool,
        server_hostname: str | None = None,
    ) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_side, server_hostname=server_hostname
        )
        self.established = False
        self.ended = False

    def start(self) -> None:
        """Begin the handshake; see :meth:`take_outgoing` for what to send.

        Raises:
            RemoteProtocolError: The peer speaks no TLS, or none that both accept.
        """
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return
        except ssl.SSLCertVerificationError as error:
            text = f"TLS handshake failed: {error.reason}: {error.verify_message}"
            raise RemoteProtocolError(text) from None
        except ssl.SSLError as error:
            raise RemoteProtocolError(f"TLS handshake failed: {error.reason}") from None
        self.established = True

    def receive(self, ciphertext: bytes) -> bytes:
        """Take what arrived and return the plain bytes that are complete.

        Raises:
            RemoteProtocolError: The handshake failed, or a record is broken.
        """
        self._incoming.write(ciphertext)
        if not self.established:
            self.start()
        return self._decrypt() if self.established else b""

    def _decrypt(self) -> bytes:
        plain = bytearray()
        try:
            while chunk := self._tls.read(READ_BYTES):
                plain += chunk
            self.ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.ended = True
        except ssl.SSLError as error:
            raise RemoteProtocolError(f"TLS: {error.reason}") from None
        return bytes(plain)

    def peer_certificate(self) -> dict[str, Any] | None:
        """Return the certificate that the peer has shown and somebody trusted vouches for.

        As ``ssl.SSLObject.getpeercert`` tells it; None if it has shown none, or nobody looked.
        """
        return self._tls.getpeercert() or None if self.established else None

    def encrypt(self, plain: bytes | memoryview) -> bytes:
        """Return the ciphertext of plain bytes; only once established."""
        if len(plain):
            self._tls.write(plain)
        return self._outgoing.read()

    def take_outgoing(self) -> bytes:
        """Return what TLS itself wants to send: handshake, tickets, alerts."""
        return self._outgoing.read()

    def close(self) -> bytes:
        """Return the closing alert."""
        # The peer's own alert is not waited for.
        with suppress(ssl.SSLError):
            self._tls.unwrap()
        return self._outgoing.read()

"""TLS from bytes to bytes, using ssl.MemoryBIO and SSLObject, without a socket or event loop.

A TLS transport of asyncio or uvloop hides the unsent part of an entry (measured: a write of 50 MB
to a non-reading peer shows an empty buffer). Encrypting above the plain transport keeps an entry's
end as exact as without TLS: the moment the kernel has its ciphertext.
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
        server_side: Whether this side is the server of the handshake.
        server_hostname: The host name that a client expects in the certificate.
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
        """Begin or continue the handshake; :meth:`take_outgoing` returns the bytes to send.

        Raises:
            RemoteProtocolError: The peer does not speak TLS, or shares no version or cipher.
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
        """Decrypt received bytes and return all plain bytes that are available.

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
        """Return the peer's verified certificate.

        In the format of ``ssl.SSLObject.getpeercert``; None without a certificate or verification.
        """
        return self._tls.getpeercert() or None if self.established else None

    def encrypt(self, plain: bytes | memoryview) -> bytes:
        """Encrypt plain bytes and return the ciphertext; the handshake must be finished."""
        if len(plain):
            self._tls.write(plain)
        return self._outgoing.read()

    def take_outgoing(self) -> bytes:
        """Return and remove the bytes that TLS itself must send: handshake, tickets, alerts."""
        return self._outgoing.read()

    def discard(self) -> None:
        """Free OpenSSL's memory (40 KiB and more) as soon as the connection is lost.

        A connection is a reference cycle, and would wait for the garbage collector, which does not
        see OpenSSL's memory.
        """
        self.established = False
        del self._tls
        self._incoming = self._outgoing = ssl.MemoryBIO()

    def close(self) -> bytes:
        """Return the alert that closes the TLS session, to be sent to the peer."""
        # Without waiting for the peer's alert.
        with suppress(ssl.SSLError):
            self._tls.unwrap()
        return self._outgoing.read()

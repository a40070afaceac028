"""TLS contexts that are made again when their files change: a new certificate needs no restart.

A file that cannot be used changes nothing: the certificates in force stay, one line of the log says
so, and a counter. The files are looked at when a connection comes, at most once in
tlsCertRefreshCheckDurationSec.
"""

from __future__ import annotations

import logging
import ssl
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from proto.transport.tls import TlsLayer
from server.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from limiter.clock import Clock
    from server.tls.settings import ClientTlsSettings, ServerTlsSettings, TlsFiles

logger = logging.getLogger(__name__)

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class TlsFilesError(StartError):
    """Certificates or keys cannot be used; the message names key, file and reason."""


class RefreshedContext:
    """The context of the files as they are.

    Args:
        make: Makes it of the files, or raises TlsFilesError.
        files: The paths that are looked at.
        refresh_seconds: The least time between two looks; below 0: never again.
        clock: Where time comes from.

    Attributes:
        refreshed_total: Times that it was made again.
        failed_total: Times that the files had changed and could not be used.

    Raises:
        TlsFilesError: They cannot be used now.
    """

    def __init__(
        self,
        make: Callable[[], ssl.SSLContext],
        files: Iterable[str],
        refresh_seconds: int,
        clock: Clock,
    ) -> None:
        self._make = make
        self._files = tuple(files)
        self._refresh_seconds = refresh_seconds
        self._clock = clock
        self._seen = self._marks()
        self._context = make()
        self._looked_at = clock.now()
        self.refreshed_total = 0
        self.failed_total = 0

    def current(self) -> ssl.SSLContext:
        """Return the context for a connection that comes now."""
        now = self._clock.now()
        if 0 <= self._refresh_seconds <= now - self._looked_at:
            self._looked_at = now
            self._look()
        return self._context

    def _look(self) -> None:
        marks = self._marks()
        if marks == self._seen:
            return
        self._seen = marks
        try:
            self._context = self._make()
        except TlsFilesError as error:
            self.failed_total += 1
            logger.error("changed certificates are not used, the old ones stay: %s", error)
        else:
            self.refreshed_total += 1
            logger.info("certificates were read again: %s", ", ".join(self._files))

    def _marks(self) -> tuple[object, ...]:
        """Return what changes with the files: a new one has another inode, length or time."""
        return tuple(_mark(Path(path)) for path in self._files)


def _mark(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class ServerTls:
    """The TLS of one port.

    Attributes:
        contexts: Those of its files.
        settings: As configured.
    """

    def __init__(self, settings: ServerTlsSettings, clock: Clock) -> None:
        self.settings = settings
        make = partial(accepting_context, settings)
        files = settings.files.named().values()
        self.contexts = RefreshedContext(make, files, settings.refresh_seconds, clock)
        self._for_http: ssl.SSLContext | None = None

    def layer(self) -> TlsLayer:
        """Return the TLS of a connection that was accepted now."""
        return TlsLayer(self.contexts.current(), server_side=True)

    @property
    def http_context(self) -> ssl.SSLContext:
        """A context that stays the same, for a listener: each handshake is handed the current one.

        It stands behind the name that a client asks for, which OpenSSL asks about also where none
        is given.
        """
        if self._for_http is None:
            self._for_http = accepting_context(self.settings)
            self._for_http.sni_callback = self._hand_over
        return self._for_http

    def _hand_over(self, tls: ssl.SSLObject, _name: str | None, _base: ssl.SSLContext) -> None:
        tls.context = self.contexts.current()


class ClientTls:
    """The TLS of connections to brokers.

    Attributes:
        contexts: Those of its files.
    """

    def __init__(self, settings: ClientTlsSettings, clock: Clock) -> None:
        make = partial(connecting_context, settings)
        files = settings.files.named().values()
        self.contexts = RefreshedContext(make, files, settings.refresh_seconds, clock)

    def layer(self, host: str) -> TlsLayer:
        """Return the TLS of a new connection to a host.

        Raises:
            ConnectionError: It is no name that a certificate could have.
        """
        try:
            return TlsLayer(self.http_context, server_side=False, server_hostname=host)
        except ValueError as error:
            raise ConnectionError(f"{host!r:.100} cannot be spoken to by TLS: {error}") from None

    @property
    def http_context(self) -> ssl.SSLContext:
        """The context for a request that is sent now."""
        return self.contexts.current()


def accepting_context(settings: ServerTlsSettings) -> ssl.SSLContext:
    """Return a port's rules and certificates.

    Raises:
        TlsFilesError: A file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _restrict(context, settings)
    # A client must show its certificate each time: by an old session it could come in with one that
    # is not trusted any more.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    if settings.asks_for_client_certificate:
        context.verify_mode = ssl.CERT_OPTIONAL
    if settings.requires_client_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
    _load(context, settings.files)
    return context


def connecting_context(settings: ClientTlsSettings) -> ssl.SSLContext:
    """Return the rules and certificates of connections to brokers.

    Raises:
        TlsFilesError: A file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _restrict(context, settings)
    context.check_hostname = settings.verifies_host_name and not settings.allows_insecure
    context.verify_mode = ssl.CERT_NONE if settings.allows_insecure else ssl.CERT_REQUIRED
    if not settings.files.trust:
        context.load_default_certs()
    _load(context, settings.files)
    return context


def _restrict(context: ssl.SSLContext, settings: ServerTlsSettings | ClientTlsSettings) -> None:
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.minimum_version = _VERSIONS[settings.protocols[0]]
    context.maximum_version = _VERSIONS[settings.protocols[-1]]
    if settings.ciphers.openssl:
        context.set_ciphers(settings.ciphers.openssl)


def _load(context: ssl.SSLContext, files: TlsFiles) -> None:
    for key, path in files.named().items():
        _check_readable(key, path)
    if files.trust:
        try:
            context.load_verify_locations(files.trust)
        except ssl.SSLError as error:
            raise TlsFilesError(
                f"{files.trust_key}={files.trust!r:.200}: no certificates in PEM ({error.reason}); "
                "name a file of those who sign the other side's"
            ) from None
    if files.certificate:
        _load_certificate(context, files)


def _check_readable(key: str, path: str) -> None:
    try:
        with Path(path).open("rb") as file:
            file.read(1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise TlsFilesError(
            f"{key}={path!r:.200}: cannot be read ({reason}); give a readable PEM file"
        ) from None


def _load_certificate(context: ssl.SSLContext, files: TlsFiles) -> None:
    try:
        # Never ask the terminal for a passphrase.
        context.load_cert_chain(files.certificate, files.key, password=lambda: "")
    except ssl.SSLError as error:
        pair = f"{files.certificate_key}={files.certificate!r:.200}"
        pair += f" with {files.key_key}={files.key!r:.200}"
        if error.reason == "KEY_VALUES_MISMATCH":
            raise TlsFilesError(
                f"{pair}: the key is another certificate's; name both files of one pair"
            ) from None
        raise TlsFilesError(
            f"{pair}: not a certificate and its private key in PEM without a passphrase "
            f"({error.reason or 'PEM'}); convert them with openssl"
        ) from None

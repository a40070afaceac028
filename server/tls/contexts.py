"""TLS contexts of a server's ports, and of connections to brokers."""

from __future__ import annotations

import ssl
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from proto.transport.tls import TlsLayer
from server.tls.refreshed import RefreshedContext, TlsFilesError

if TYPE_CHECKING:
    from limiter.clock import Clock
    from server.tls.settings import ClientTlsSettings, ServerTlsSettings, TlsFiles

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class ServerTls:
    """TLS on a port: the settings, and the contexts made from certificate files.

    Attributes:
        contexts: The TLS contexts made from the certificate files.
        settings: The TLS settings of the port.
    """

    def __init__(self, settings: ServerTlsSettings, clock: Clock) -> None:
        self.settings = settings
        make = partial(accepting_context, settings)
        self.contexts = RefreshedContext(make, settings.files, settings.refresh_seconds, clock)
        self._for_http: ssl.SSLContext | None = None

    def layer(self) -> TlsLayer:
        """Return a TLS layer for a newly accepted connection."""
        return TlsLayer(self.contexts.current(), server_side=True)

    @property
    def http_context(self) -> ssl.SSLContext:
        """The context for an HTTP listener, which passes each handshake on to the newest context.

        By OpenSSL's callback for the requested host name, which is called even without a name.
        """
        if self._for_http is None:
            self._for_http = accepting_context(self.settings)
            self._for_http.sni_callback = self._hand_over
        return self._for_http

    def _hand_over(self, tls: ssl.SSLObject, _name: str | None, _base: ssl.SSLContext) -> None:
        tls.context = self.contexts.current()


class ClientTls:
    """TLS on connections to brokers: the settings, and the contexts made from certificate files.

    Attributes:
        contexts: The TLS contexts made from the certificate files.
    """

    def __init__(self, settings: ClientTlsSettings, clock: Clock) -> None:
        make = partial(connecting_context, settings)
        self.contexts = RefreshedContext(make, settings.files, settings.refresh_seconds, clock)

    def layer(self, host: str) -> TlsLayer:
        """Return a TLS layer for a new connection to a host.

        Raises:
            ConnectionError: The host is not a valid certificate name.
        """
        try:
            return TlsLayer(self.http_context, server_side=False, server_hostname=host)
        except ValueError as error:
            raise ConnectionError(f"{host!r:.100} cannot be reached by TLS: {error}") from None

    @property
    def http_context(self) -> ssl.SSLContext:
        """The TLS context for an HTTP request that is sent now."""
        return self.contexts.current()


def accepting_context(settings: ServerTlsSettings) -> ssl.SSLContext:
    """Return a new TLS context for a port, with the port's certificates.

    Raises:
        TlsFilesError: A file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _restrict(context, settings)
    # A client must show its certificate each time: a resumed session could bypass the check of a
    # certificate that is not trusted any more.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    if settings.asks_for_client_certificate:
        context.verify_mode = ssl.CERT_OPTIONAL
    if settings.requires_client_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
    _load(context, settings.files)
    return context


def connecting_context(settings: ClientTlsSettings) -> ssl.SSLContext:
    """Return a new TLS context for connections to brokers, with the configured certificates.

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
                "name a file with the certificates that sign the other side's"
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
        # Never prompt for a passphrase.
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

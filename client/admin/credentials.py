"""Credentials that the admin client sends in each request, and again after a redirect."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from client.admin.errors import AdminCredentialsError
from client.authentication.tls import AuthenticationTLS
from client.exceptions import PulsarException

if TYPE_CHECKING:
    import aiohttp

    from client.authentication.authentication import Authentication


class ShowCredentials:
    """An aiohttp middleware that adds credentials to every request.

    Brokers redirect to the owner of a topic, which authenticates the client, too. A redirect from
    ``https`` to ``http`` gets no credentials.

    Args:
        authentication: The credentials.
        encrypted: Whether the URL of the original request uses ``https``.
    """

    def __init__(self, authentication: Authentication, *, encrypted: bool) -> None:
        self._authentication = authentication
        self._encrypted = encrypted

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Add the credentials to a request, and send it on."""
        if self._encrypted and request.url.scheme != "https":
            raise AdminCredentialsError(
                f"the server redirects from https to {request.url.scheme}://{request.url.host}: no "
                "credentials are sent there"
            )
        try:
            headers = self._authentication.http_headers()
        except PulsarException as error:
            raise AdminCredentialsError(str(error)) from None
        if not all(value.isascii() and value.isprintable() for value in headers.values()):
            raise AdminCredentialsError("credentials sent with HTTP must be a single line of text")
        request.headers.update(headers)
        return await handler(request)


def web_tls(
    authentication: Authentication | None, trust_certs_file_path: str | None
) -> ssl.SSLContext | None:
    """Return the TLS context with the given certificates; None if system defaults suffice.

    Raises:
        AdminCredentialsError: A certificate or key file is unusable.
    """
    own = authentication if isinstance(authentication, AuthenticationTLS) else None
    if own is None and not trust_certs_file_path:
        return None
    try:
        context = ssl.create_default_context(cafile=trust_certs_file_path or None)
    except (OSError, ValueError) as error:
        raise AdminCredentialsError(
            f"the certificates {trust_certs_file_path!r:.200} cannot be used: {error}"
        ) from None
    if own is not None:
        try:
            # Never ask the terminal for a passphrase.
            context.load_cert_chain(own.certificate_path, own.private_key_path, lambda: "")
        except (OSError, ValueError) as error:
            raise AdminCredentialsError(
                f"the certificate {own.certificate_path!r:.200} with the key "
                f"{own.private_key_path!r:.200} cannot be used: {error}"
            ) from None
    return context

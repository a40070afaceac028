"""The authentication service: providers by method, TLS certificates, and the anonymous role."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from limiter.clock import LoopClock
from limiter.extras import SERVERS, extra
from server.authentication.basic.provider import BasicProvider
from server.authentication.counters import AuthenticationCounters
from server.authentication.providers import NO_METHOD, AuthenticationError, ExpiredError, Principal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from limiter.clock import Clock
    from server.authentication.providers import AuthenticationProvider, Certificate
    from server.configuration.authentication import AuthenticationSettings

_METHOD = re.compile(r"[\w.-]{1,20}", re.ASCII)
METHOD_HEADER = "X-Pulsar-Auth-Method-Name"


class AuthenticationService:
    """Authenticates peers, each by the provider of the peer's method.

    Args:
        providers: A provider for each method, tried in order for a request without a method.
        anonymous_role: The role of peers without credentials; empty if they are refused.
        strict: HTTP requests must name their method.
        clock: The source of time, for the remaining life of tokens.

    Attributes:
        counters: Counts of accepted and refused credentials.

    Source: upstream AuthenticationService.
    """

    def __init__(
        self,
        providers: Iterable[AuthenticationProvider],
        anonymous_role: str = "",
        *,
        strict: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.counters = AuthenticationCounters()
        self.clock: Clock = clock or LoopClock()
        self._providers = {provider.method: provider for provider in providers}
        basic = self._providers.get(BasicProvider.method)
        self._passwords = basic if isinstance(basic, BasicProvider) else None
        self._anonymous_role = anonymous_role
        self._strict = strict

    def takes_time(self, method: str, data: bytes) -> bool:
        """Return True if ``authenticate`` would block, hashing a password without ``prepare``."""
        passwords = self._passwords if method == BasicProvider.method else None
        return passwords is not None and passwords.takes_time(data)

    async def prepare(self, method: str, data: bytes, address: str) -> None:
        """Hash a password on a thread if needed, so that ``authenticate`` does not block."""
        if self._passwords is not None and method == BasicProvider.method:
            await self._passwords.prepare(data, address)

    async def prepare_request(self, headers: Mapping[str, str], address: str) -> None:
        """Hash a request's password on a thread if needed.

        Then ``authenticate_request`` does not block.
        """
        method = headers.get(METHOD_HEADER, "" if self._strict else BasicProvider.method)
        if self._passwords is None or method != BasicProvider.method:
            return
        with suppress(AuthenticationError):
            await self._passwords.prepare(self._passwords.http_data(headers), address)

    def authenticate(self, method: str, data: bytes, certificate: Certificate | None) -> Principal:
        """Check the credentials of a CONNECT or AUTH_RESPONSE, and return the authenticated peer.

        A method without a provider gets the anonymous role; wrong credentials do not.

        Raises:
            AuthenticationError: The credentials are not accepted.
        """
        provider = self._providers.get(method)
        if provider is not None:
            return self._judged(provider, data, certificate)
        if not self._anonymous_role:
            raise AuthenticationError(
                "No anonymous role, and no authentication provider configured"
            )
        return self._anonymous()

    def refreshed(
        self, before: Principal, data: bytes, certificate: Certificate | None
    ) -> Principal:
        """Check a peer's fresh credentials, by the method used before, and return the peer.

        Raises:
            AuthenticationError: The credentials are not accepted, or none were requested.
        """
        provider = self._providers.get(before.method)
        if provider is None:
            raise AuthenticationError("the peer sent credentials, but connected without any")
        if self.takes_time(before.method, data):
            # Passwords do not expire, and the peer's own are known: no other password is hashed.
            raise AuthenticationError("another password than before", "INVALID_TOKEN")
        return self._judged(provider, data, certificate)

    def authenticate_request(
        self, headers: Mapping[str, str], certificate: Certificate | None
    ) -> Principal:
        """Check the credentials of an HTTP request, and return the authenticated peer.

        Without a method's name every provider is tried; if all fail, the request is anonymous, if
        an anonymous role is set.

        Raises:
            AuthenticationError: The credentials are not accepted.
        """
        method = headers.get(METHOD_HEADER)
        if method is not None:
            provider = self._providers.get(method)
            if provider is None:
                shown = method if _METHOD.fullmatch(method) else "(no method)"
                raise AuthenticationError(f"Unsupported authentication method: [{shown}].")
            return self._judged(provider, headers, certificate)
        if self._strict:
            raise AuthenticationError("Authentication method missing")
        first: AuthenticationError | None = None
        for provider in self._providers.values():
            try:
                return self._judged(provider, headers, certificate)
            except AuthenticationError as error:
                first = first or error
        if self._anonymous_role:
            return self._anonymous()
        raise first or AuthenticationError("Authentication required")

    def _judged(
        self,
        provider: AuthenticationProvider,
        shown: bytes | Mapping[str, str],
        certificate: Certificate | None,
    ) -> Principal:
        """Check credentials by one provider, count success or failure, and return the peer."""
        counters = self.counters
        try:
            data = shown if isinstance(shown, bytes) else provider.http_data(shown)
            principal = provider.authenticate(data, certificate)
        except AuthenticationError as error:
            if error.code:
                counters.failures[provider.name, provider.method, error.code] += 1
            counters.expired_tokens += isinstance(error, ExpiredError)
            raise
        counters.successes[provider.name, provider.method] += 1
        if principal.expires_at_ms is not None:
            counters.expires_in((principal.expires_at_ms - self.clock.wall_ms()) / 60_000)
        return principal

    def _anonymous(self) -> Principal:
        return Principal(self._anonymous_role, NO_METHOD)


def open_service(
    settings: AuthenticationSettings | None, clock: Clock
) -> AuthenticationService | None:
    """Return the configured authentication service; None if authentication is off.

    Raises:
        StartError: A key or a file cannot be used.
    """
    if settings is None:
        return None
    providers: list[AuthenticationProvider] = []
    for method in settings.methods:
        if settings.token is not None and method == "token":
            # The libraries cost 60 ms and 10 MB: only who takes tokens pays them.
            with extra("security", SERVERS):
                from server.authentication.token import TokenProvider

            providers.append(TokenProvider(settings.token, clock))
        elif method == BasicProvider.method:
            providers.append(BasicProvider(settings.basic_source, clock))
        else:
            providers.append(CertificateProvider())
    return AuthenticationService(
        providers, settings.anonymous_role, strict=settings.strict, clock=clock
    )


class CertificateProvider:
    """Authenticates a peer by a TLS certificate; the certificate's common name is the role.

    Attributes:
        method: ``tls``.
        name: See AuthenticationProvider.

    Source: upstream AuthenticationProviderTls.
    """

    method = "tls"
    name = "AuthenticationProviderTls"

    def authenticate(self, data: bytes, certificate: Certificate | None) -> Principal:
        """Return the peer that its TLS certificate names; ``data`` is ignored."""
        if not certificate:
            raise AuthenticationError("Failed to get TLS certificates from client", "INVALID_CERTS")
        for part in certificate.get("subject", ()):
            for name, value in part:
                if name == "commonName" and value:
                    return Principal(value, self.method)
        raise AuthenticationError(
            "Client unable to authenticate with TLS certificate", "INVALID_CN"
        )

    def http_data(self, headers: Mapping[str, str]) -> bytes:
        """Return empty credentials, as TLS has already checked the peer's certificate."""
        return b""

"""The authentication service: finds the provider of a method, and knows the anonymous role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.authentication.basic import BasicProvider
from server.authentication.certificate import CertificateProvider
from server.authentication.errors import AuthenticationError
from server.authentication.principal import NO_METHOD, Principal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from limiter.clock import Clock
    from server.authentication.providers import AuthenticationProvider, Certificate
    from server.configuration.authentication import AuthenticationSettings

METHOD_HEADER = "X-Pulsar-Auth-Method-Name"


class AuthenticationService:
    """Tells who a peer is, by any of its providers.

    Args:
        providers: One for each method, asked in this order where a request names none.
        anonymous_role: The role of whoever shows no credentials of a known method; empty: none.
        strict: HTTP requests must name their method.

    Source: upstream AuthenticationService.
    """

    def __init__(
        self,
        providers: Iterable[AuthenticationProvider],
        anonymous_role: str = "",
        *,
        strict: bool = False,
    ) -> None:
        self._providers = {provider.method: provider for provider in providers}
        self._anonymous_role = anonymous_role
        self._strict = strict

    def authenticate(self, method: str, data: bytes, certificate: Certificate | None) -> Principal:
        """Return who shows these credentials in CONNECT or AUTH_RESPONSE.

        A method without a provider is the anonymous role's; wrong credentials are nobody's.

        Raises:
            AuthenticationError: They prove nothing.
        """
        provider = self._providers.get(method)
        if provider is not None:
            return provider.authenticate(data, certificate)
        if not self._anonymous_role:
            raise AuthenticationError(
                "No anonymous role, and no authentication provider configured"
            )
        return self._anonymous()

    def refreshed(
        self, before: Principal, data: bytes, certificate: Certificate | None
    ) -> Principal:
        """Return who shows fresh credentials of the method that was used before.

        Raises:
            AuthenticationError: They prove nothing, or nobody asked for any.
        """
        provider = self._providers.get(before.method)
        if provider is None:
            raise AuthenticationError("credentials of a peer that had shown none")
        return provider.authenticate(data, certificate)

    def authenticate_request(
        self, headers: Mapping[str, str], certificate: Certificate | None
    ) -> Principal:
        """Return who sends an HTTP request.

        Without the method's name every provider is asked, and who fails with all of them is
        anonymous, where there is such a role.

        Raises:
            AuthenticationError: Nobody who is known.
        """
        method = headers.get(METHOD_HEADER)
        if method is not None:
            provider = self._providers.get(method)
            if provider is None:
                raise AuthenticationError(f"Unsupported authentication method: [{method:.60}].")
            return provider.authenticate(provider.http_data(headers), certificate)
        if self._strict:
            raise AuthenticationError("Authentication method missing")
        first: AuthenticationError | None = None
        for provider in self._providers.values():
            try:
                return provider.authenticate(provider.http_data(headers), certificate)
            except AuthenticationError as error:
                first = first or error
        if self._anonymous_role:
            return self._anonymous()
        raise first or AuthenticationError("Authentication required")

    def _anonymous(self) -> Principal:
        return Principal(self._anonymous_role, NO_METHOD)


def open_service(
    settings: AuthenticationSettings | None, clock: Clock
) -> AuthenticationService | None:
    """Return the service of a configuration; None without authentication.

    Raises:
        StartError: A key or a file cannot be used.
    """
    if settings is None:
        return None
    providers: list[AuthenticationProvider] = []
    for method in settings.methods:
        if settings.token is not None and method == "token":
            # The libraries cost 60 ms and 10 MB: only who takes tokens pays them.
            from server.authentication.token import TokenProvider

            providers.append(TokenProvider(settings.token, clock))
        elif method == BasicProvider.method:
            providers.append(BasicProvider(settings.basic_source))
        else:
            providers.append(CertificateProvider())
    return AuthenticationService(providers, settings.anonymous_role, strict=settings.strict)

"""A cluster's service URL and credentials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from client.connection.service_url import parse_service_url
from client.exceptions import ConnectError, InvalidConfiguration, InvalidUrl

if TYPE_CHECKING:
    from client.authentication.authentication import Authentication


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """The service URL of a cluster, with credentials and trusted certificates.

    Attributes:
        service_url: ``pulsar://host:port`` or ``pulsar+ssl://host:port``; several hosts are
            separated by commas.
        authentication: Credentials.
        tls_trust_certs_file_path: File of trusted CA certificates.

    Raises:
        InvalidUrl: The service URL is invalid.
        InvalidConfiguration: The service URL is not a text.
    """

    service_url: str
    authentication: Authentication | None = None
    tls_trust_certs_file_path: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.service_url, str):
            raise InvalidConfiguration(
                f"service_url is a str such as pulsar://host:6650, not {self.service_url!r:.50}"
            )
        try:
            parse_service_url(self.service_url)
        except ConnectError as error:
            raise InvalidUrl(str(error)) from None

    @property
    def use_tls(self) -> bool:
        """True if the service URL demands TLS."""
        return parse_service_url(self.service_url).tls

"""A client of the admin REST of a Floodgate broker or a real Pulsar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from client.admin.brokers import Brokers, Floodgate
from client.admin.calls import Calls
from client.admin.namespaces import Clusters, Namespaces, Tenants
from client.admin.rest import AdminRest
from client.admin.schemas import Schemas
from client.admin.topics import Topics
from client.admin.url import DEFAULT_ADMIN_URL, REQUEST_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from client.authentication.authentication import Authentication


class PulsarAdmin:
    """The admin REST of an address; errors are :class:`client.admin.errors.AdminError`.

    Example:
        async with PulsarAdmin("http://localhost:8080") as admin:
            await admin.topics.create(TopicName.parse("orders"), {"team": "red"})

    Args:
        admin_url: ``http://host:port`` of a broker's web port.
        request_timeout_seconds: Longest wait for the next byte.
        authentication: Credentials for every request, as for a Client.
        tls_trust_certs_file_path: Trusted CA certificates (PEM); None for the system's.

    Raises:
        AdminUrlError: The address is not a web address.
        AdminCredentialsError: A certificate file is unusable.
    """

    def __init__(
        self,
        admin_url: str = DEFAULT_ADMIN_URL,
        request_timeout_seconds: float = REQUEST_TIMEOUT_SECONDS,
        authentication: Authentication | None = None,
        tls_trust_certs_file_path: str | None = None,
    ) -> None:
        self._rest = AdminRest(
            admin_url, request_timeout_seconds, authentication, tls_trust_certs_file_path
        )
        self.topics = Topics(self._rest)
        self.namespaces = Namespaces(self._rest)
        self.tenants = Tenants(self._rest)
        self.schemas = Schemas(self._rest)
        self.clusters = Clusters(self._rest)
        self.brokers = Brokers(self._rest)
        self.floodgate = Floodgate(self._rest)
        self.calls = Calls(self._rest)

    async def __aenter__(self) -> Self:
        await self._rest.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._rest.__aexit__()

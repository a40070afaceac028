"""A client of the admin REST API of a Floodgate broker or a real Pulsar broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeAlias

from client.admin.cluster import Brokers, Clusters, Floodgate, Namespaces, Tenants
from client.admin.rest import AdminRequests, AdminRest, Body
from client.admin.topics import Schemas, Topics
from client.admin.url import (
    DEFAULT_ADMIN_URL,
    REQUEST_TIMEOUT_SECONDS,
    namespace_path,
    path,
    query,
    topic_path,
)
from proto.names import NamespaceName, TopicName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from client.authentication.authentication import Authentication

Subject: TypeAlias = NamespaceName | TopicName


class Calls(AdminRequests):
    """Any admin request about a namespace or topic, given by its HTTP method and URL path.

    Example:
        await admin.calls.ask("GET", topic, "retention", parameters={"applied": True})
        await admin.calls.ask("POST", topic, "subscription", "s", "skip", 10)
    """

    async def ask(
        self,
        method: str,
        subject: Subject,
        *segments: object,
        parameters: Mapping[str, str | bool | None] | None = None,
        body: object = None,
    ) -> Any:  # noqa: ANN401 - JSON
        """Send a request, and return the JSON value in the response; None if it is empty.

        Args:
            method: The HTTP method.
            subject: The namespace or topic that the request is about.
            segments: Further segments of the URL path.
            parameters: Query parameters; empty values are omitted.
            body: JSON value to send as the body; None sends no body.
        """
        sent = None if body is None else Body(body)
        return await self._rest.value(method, _path(subject, segments, parameters), sent)

    async def message(
        self,
        topic: TopicName,
        *segments: object,
        parameters: Mapping[str, str | bool | None] | None = None,
    ) -> dict[str, Any]:
        """Return a message of a topic as its payload (text) and Pulsar's HTTP headers."""
        return await self._rest.message(_path(topic, segments, parameters))


def _path(
    subject: Subject,
    segments: tuple[object, ...],
    parameters: Mapping[str, str | bool | None] | None,
) -> str:
    if isinstance(subject, TopicName):
        base = topic_path(subject)
    else:
        base = namespace_path("namespaces", subject)
    return f"{base}{path(*segments)}{query(**(parameters or {}))}"


class PulsarAdmin:
    """A client of a broker's admin REST API.

    Its errors are :class:`client.admin.errors.AdminError`.

    Example:
        async with PulsarAdmin("http://localhost:8080") as admin:
            await admin.topics.create(TopicName.parse("orders"), {"team": "red"})

    Args:
        admin_url: ``http://host:port`` of a broker's web port.
        request_timeout_seconds: Longest time to wait for the next byte of a response.
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

"""Calls of the admin REST, and exchanges of several with state carried along."""

from dataclasses import dataclass

JSON_TYPE = "application/json"
METADATA_TYPE = "application/vnd.partitioned-topic-metadata+json"
NAMESPACE = "ns"
"""The namespace that each exchange finds in its tenant."""
PLAIN = "plain"
"""The oddity of a call that has none."""


@dataclass(frozen=True, slots=True)
class RestCall:
    """One call, as its bytes go on the wire.

    Attributes:
        kind: Method and path with variables, such as ``GET /admin/v2/tenants/{tenant}``: of the
            call before an oddity was done to it.
        oddity: What is odd about it; ``plain`` for nothing.
        method: The verb.
        path: With its query; nothing in it is normalised.
        body: None sends none.
        headers: Beside Host, and Content-Length where there is a body.
    """

    kind: str
    oddity: str
    method: str
    path: str
    body: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RestExchange:
    """Calls in their order, in a tenant that no other exchange uses.

    Attributes:
        name: The seed and a number.
        tenant: Made before the first call with the namespace ``ns``, gone after the last. Further
            tenants of the exchange begin with its name.
        calls: What is asked.
    """

    name: str
    tenant: str
    calls: tuple[RestCall, ...]

    @property
    def preparation(self) -> tuple[RestCall, ...]:
        """The calls that make the tenant and its namespace; they count as no calls."""
        headers = (("Content-Type", JSON_TYPE),)
        tenant = f"/admin/v2/tenants/{self.tenant}"
        namespace = f"/admin/v2/namespaces/{self.tenant}/{NAMESPACE}"
        clusters = '{"allowedClusters":["standalone"]}'
        return (
            RestCall("preparation", PLAIN, "PUT", tenant, clusters, headers),
            RestCall("preparation", PLAIN, "PUT", namespace, "{}", headers),
        )

    @property
    def changes_all(self) -> bool:
        """True if it touches what is no tenant's: such exchanges are played one at a time."""
        return any("/configuration" in call.path for call in self.calls)

"""Admin REST calls, and exchanges: sequences of calls with shared state."""

from dataclasses import dataclass

JSON_TYPE = "application/json"
METADATA_TYPE = "application/vnd.partitioned-topic-metadata+json"
NAMESPACE = "ns"
"""Namespace that each exchange finds in its tenant."""
PLAIN = "plain"
"""Oddity of an ordinary call."""


@dataclass(frozen=True, slots=True)
class RestCall:
    """Call, as sent on the wire.

    Attributes:
        kind: Method and path with variables, such as ``GET /admin/v2/tenants/{tenant}``, before
            an oddity was applied.
        oddity: The oddity's name; ``plain`` without an oddity.
        method: The verb.
        path: With its query; not normalised.
        body: None sends no body.
        headers: Beside Host, and Content-Length with a body.
    """

    kind: str
    oddity: str
    method: str
    path: str
    body: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RestExchange:
    """Calls in order, in a private tenant.

    Attributes:
        name: The seed and a number.
        tenant: Created before the first call with the namespace ``ns``, removed after the last.
            Further tenants of the exchange begin with its name.
        calls: The calls.
    """

    name: str
    tenant: str
    calls: tuple[RestCall, ...]

    @property
    def preparation(self) -> tuple[RestCall, ...]:
        """Return the calls that create the tenant and its namespace; not counted as calls."""
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
        """True if a call affects global state: such exchanges are played sequentially."""
        return any("/configuration" in call.path for call in self.calls)

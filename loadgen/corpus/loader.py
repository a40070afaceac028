"""Creates topics through Pulsar's admin REST API, as ``pulsar-admin`` does, many at a time.

What exists already (409) is as good as created. The mutable state is the counters of the loader.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import aiohttp

from loadgen.errors import LoadgenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from loadgen.corpus.source import TopicToCreate
    from proto.names import NamespaceName

_EXISTS = 409
_FIRST_ERROR = 400
# A partitioned topic with properties is sent as this type; plain JSON means a bare count.
_PARTITIONED_METADATA = "application/vnd.partitioned-topic-metadata+json"


class PulsarAdmin:
    """The few calls of the admin API that create things."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = f"{url.rstrip('/')}/admin/v2"

    async def clusters(self) -> list[str]:
        """Return the clusters that a tenant may be allowed to use."""
        status, text = await self._call("GET", "/clusters", None)
        if status >= _FIRST_ERROR:
            raise LoadgenError(refusal("GET", f"{self._url}/clusters", status, text))
        try:
            return [str(name) for name in json.loads(text) if name != "global"]
        except (TypeError, ValueError) as error:
            raise LoadgenError(f"{self._url}/clusters is no Pulsar: {text[:80]!r}.") from error

    async def create_tenant(self, tenant: str, clusters: list[str]) -> bool:
        """Create a tenant; false if it existed."""
        return await self._put(f"/tenants/{quote(tenant)}", {"allowedClusters": clusters})

    async def create_namespace(self, namespace: NamespaceName) -> bool:
        """Create a namespace; false if it existed."""
        return await self._put(f"/namespaces/{quote(str(namespace))}", {})

    async def create_topic(self, topic: TopicToCreate) -> bool:
        """Create a topic, with its partitions where it has any; false if it existed."""
        local = quote(topic.name.local_name, safe="")
        path = f"/{topic.name.domain}/{quote(str(topic.name.namespace))}/{local}"
        if not topic.partitions:
            return await self._put(path, dict(topic.properties))
        if not topic.properties:
            return await self._put(f"{path}/partitions", topic.partitions)
        body = {"partitions": topic.partitions, "properties": dict(topic.properties)}
        return await self._put(f"{path}/partitions", body, _PARTITIONED_METADATA)

    async def _put(self, path: str, body: Any, media_type: str = "application/json") -> bool:  # noqa: ANN401
        """Create something; false if it existed."""
        status, text = await self._call("PUT", path, body, media_type)
        if status == _EXISTS:
            return False
        if status >= _FIRST_ERROR:
            raise LoadgenError(refusal("PUT", f"{self._url}{path}", status, text))
        return True

    async def _call(
        self,
        method: str,
        path: str,
        body: Any,  # noqa: ANN401
        media_type: str = "application/json",
    ) -> tuple[int, str]:
        """Return status and text of one call."""
        url = f"{self._url}{path}"
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": media_type}
        try:
            async with self._session.request(method, url, data=data, headers=headers) as answer:
                return answer.status, await answer.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise LoadgenError(unreachable(url, error)) from error


class TopicLoader:
    """Creates topics and, before them, their tenants and namespaces.

    At most ``concurrency`` calls are under way, and as many topics wait in a queue.
    """

    def __init__(self, admin: PulsarAdmin, concurrency: int) -> None:
        self._admin = admin
        self._concurrency = concurrency
        self._tenants: set[str] = set()
        self.namespaces: set[NamespaceName] = set()
        self.names = 0
        """Listed names created or found: a partitioned topic counts its partitions."""
        self.existing = 0
        """Topics (not names) that existed already."""

    async def load(
        self, topics: Iterable[TopicToCreate], on_names_created: Callable[[int], None]
    ) -> None:
        """Create all topics; the first failure ends it.

        Raises:
            LoadgenError: The server refused something, or cannot be reached.
        """
        clusters = await self._admin.clusters()
        waiting: asyncio.Queue[TopicToCreate | None] = asyncio.Queue(self._concurrency)
        failures: list[LoadgenError] = []
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(self._concurrency):
                    tasks.create_task(self._create_waiting(waiting, on_names_created))
                for topic in topics:
                    await self._prepare(topic.name.namespace, clusters)
                    await waiting.put(topic)
                for _ in range(self._concurrency):
                    await waiting.put(None)
        except* LoadgenError as group:
            failures += [error for error in group.exceptions if isinstance(error, LoadgenError)]
        if failures:
            raise failures[0]

    async def _create_waiting(
        self,
        waiting: asyncio.Queue[TopicToCreate | None],
        on_names_created: Callable[[int], None],
    ) -> None:
        """Create what waits, until the end is told."""
        while (topic := await waiting.get()) is not None:
            created = await self._admin.create_topic(topic)
            self.existing += not created
            self.names += max(topic.partitions, 1)
            on_names_created(self.names)

    async def _prepare(self, namespace: NamespaceName, clusters: list[str]) -> None:
        """Create a namespace, and its tenant, when it is met first."""
        if namespace in self.namespaces:
            return
        if namespace.tenant not in self._tenants:
            await self._admin.create_tenant(namespace.tenant, clusters)
            self._tenants.add(namespace.tenant)
        await self._admin.create_namespace(namespace)
        self.namespaces.add(namespace)


def refusal(method: str, url: str, status: int, text: str) -> str:
    """Return the sentence for an HTTP error, with the server's reason where it gives one."""
    try:
        reason = json.loads(text)["reason"]
    except (ValueError, KeyError, TypeError):
        reason = text.strip().partition("\n")[0] or "no reason given"
    return f"{method} {url} was refused with HTTP {status}: {reason}"


def unreachable(url: str, error: BaseException) -> str:
    """Return the sentence for a server that does not answer."""
    cause = getattr(error, "os_error", error)
    return f"{url} cannot be reached ({str(cause) or type(cause).__name__}); is the server running?"

"""Requests to the admin REST API about topics and their schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from client.admin.rest import AdminRequests, Body
from client.admin.url import namespace_path, path, properties_text, query, topic_path
from proto.names import DOMAINS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from client.admin.rest import NameBatches
    from proto.names import NamespaceName, TopicName


class Schemas(AdminRequests):
    """The admin requests that the commands ``pulsar-admin schemas`` send."""

    async def get(self, topic: TopicName, version: int | None = None) -> dict[str, Any]:
        """Return a version of a topic's schema; by default the latest.

        The members are ``type``, ``data``, ``properties``, ``version`` and ``timestamp``.
        """
        last = "" if version is None else path(version)
        return await self._rest.mapping(f"{_path(topic)}/schema{last}")

    async def get_all(self, topic: TopicName) -> list[dict[str, Any]]:
        """Return all versions of a topic's schema that are not deleted, oldest first."""
        found = await self._rest.mapping(f"{_path(topic)}/schemas")
        versions: list[dict[str, Any]] = found.get("getSchemaResponses", [])
        return versions

    async def upload(
        self, topic: TopicName, kind: str, definition: str, properties: Mapping[str, str]
    ) -> int:
        """Add a version to a topic's schema; return the version's number.

        If the same schema exists already, return its existing number.
        """
        answer = await self._rest.mapping(
            f"{_path(topic)}/schema", "POST", _body(kind, definition, properties)
        )
        return int(answer["version"]["version"])

    async def delete(self, topic: TopicName, *, force: bool = False) -> None:
        """Delete all versions of a topic's schema.

        With ``force`` later versions are numbered from 0 again.
        """
        await self._rest.text("DELETE", f"{_path(topic)}/schema{query(force=force)}")

    async def compatibility(
        self, topic: TopicName, kind: str, definition: str, properties: Mapping[str, str]
    ) -> dict[str, Any]:
        """Check whether a schema is compatible with a topic's existing versions.

        The result's members are ``compatibility`` and ``schemaCompatibilityStrategy``.
        """
        return await self._rest.mapping(
            f"{_path(topic)}/compatibility", "POST", _body(kind, definition, properties)
        )


def _body(kind: str, definition: str, properties: Mapping[str, str]) -> Body:
    return Body({"type": kind, "schema": definition, "properties": dict(properties)})


def _path(topic: TopicName) -> str:
    return namespace_path("schemas", topic.namespace) + path(topic.local_name)


PARTITIONED_METADATA = "application/vnd.partitioned-topic-metadata+json"
"""Media type of a request for a partitioned topic with properties; JSON means only a number."""


class Topics(AdminRequests):
    """The admin requests that the commands ``pulsar-admin topics`` send."""

    def list(
        self,
        namespace: NamespaceName,
        domains: Sequence[str] = DOMAINS,
        *,
        bundle: str | None = None,
        include_system_topics: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> NameBatches:
        """Yield the full names of a namespace's topics while they are received.

        Each partition is a name of its own.

        Args:
            namespace: The namespace.
            domains: Topic domains to list: persistent, non-persistent, or both. Both are requested
                concurrently.
            bundle: Hash range (bundle), such as ``0x00000000_0x40000000``, whose topics to list.
            include_system_topics: Whether to include hidden system topics.
            properties: Properties that the broker's listing plug-in gets (PIP-452).
        """
        asked = query(
            bundle=bundle,
            includeSystemTopic=include_system_topics,
            properties=properties_text(properties or {}),
        )
        return self._rest.names(
            [f"{namespace_path(domain, namespace)}{asked}" for domain in domains]
        )

    def list_partitioned(
        self,
        namespace: NamespaceName,
        domains: Sequence[str] = DOMAINS,
        *,
        include_system_topics: bool = False,
    ) -> NameBatches:
        """Yield the names of a namespace's partitioned topics, without their partitions."""
        asked = query(includeSystemTopic=include_system_topics)
        return self._rest.names(
            [f"{namespace_path(domain, namespace)}/partitioned{asked}" for domain in domains]
        )

    async def create(self, topic: TopicName, properties: Mapping[str, str] | None = None) -> None:
        """Create a topic that has no partitions."""
        await self._rest.text("PUT", topic_path(topic), Body(dict(properties or {})))

    async def delete(self, topic: TopicName, *, force: bool = False) -> None:
        """Delete an unpartitioned topic.

        With ``force`` it is deleted even while clients are connected to it.
        """
        await self._rest.text("DELETE", f"{topic_path(topic)}{query(force=force)}")

    async def create_partitioned(
        self, topic: TopicName, partitions: int, properties: Mapping[str, str] | None = None
    ) -> None:
        """Create a partitioned topic, and all its partitions."""
        body = Body(partitions)
        if properties:
            metadata = {"partitions": partitions, "properties": dict(properties)}
            body = Body(metadata, PARTITIONED_METADATA)
        await self._rest.text("PUT", f"{topic_path(topic)}/partitions", body)

    async def update_partitioned(
        self, topic: TopicName, partitions: int, *, force: bool = False, local_only: bool = False
    ) -> None:
        """Raise the number of partitions of a topic; it cannot be lowered."""
        asked = query(updateLocalTopicOnly=local_only, force=force)
        await self._rest.text("POST", f"{topic_path(topic)}/partitions{asked}", Body(partitions))

    async def delete_partitioned(self, topic: TopicName, *, force: bool = False) -> None:
        """Delete a partitioned topic with all its partitions."""
        await self._rest.text("DELETE", f"{topic_path(topic)}/partitions{query(force=force)}")

    async def partitioned_metadata(self, topic: TopicName) -> dict[str, Any]:
        """Return a topic's ``partitions`` (their number), ``deleted`` and ``properties``.

        ``partitions`` is 0 if the topic is not partitioned.
        """
        return await self._rest.mapping(f"{topic_path(topic)}/partitions")

    async def lookup(self, topic: TopicName) -> dict[str, Any]:
        """Return the service addresses of the broker that serves a topic."""
        return await self._rest.mapping(_lookup_path(topic))

    async def bundle_range(self, topic: TopicName) -> str:
        """Return the hash range (bundle) that contains a topic, as ``0x00000000_0x40000000``."""
        return (await self._rest.text("GET", f"{_lookup_path(topic)}/bundle")).strip()

    async def properties(self, topic: TopicName) -> dict[str, Any]:
        """Return the properties of a topic."""
        return await self._rest.mapping(f"{topic_path(topic)}/properties")

    async def update_properties(self, topic: TopicName, properties: Mapping[str, str]) -> None:
        """Set the given properties of a topic; its other properties stay unchanged."""
        await self._rest.text("PUT", f"{topic_path(topic)}/properties", Body(dict(properties)))

    async def remove_property(self, topic: TopicName, key: str) -> None:
        """Remove a property of a topic."""
        await self._rest.text("DELETE", f"{topic_path(topic)}/properties{query(key=key)}")


def _lookup_path(topic: TopicName) -> str:
    return topic_path(topic).replace("/admin/v2", "/lookup/v2/topic", 1)

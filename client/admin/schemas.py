"""Schemas of topics over the admin REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from client.admin.rest import Body
from client.admin.url import path, query

if TYPE_CHECKING:
    from collections.abc import Mapping

    from client.admin.rest import AdminRest
    from proto.names import TopicName


class Schemas:
    """The calls of ``pulsar-admin schemas``. Every method raises AdminError."""

    def __init__(self, rest: AdminRest) -> None:
        self._rest = rest

    async def get(self, topic: TopicName, version: int | None = None) -> dict[str, Any]:
        """Return ``type``, ``data``, ``properties``, ``version`` and ``timestamp``."""
        last = "" if version is None else path(version)
        return await self._rest.mapping(f"{_path(topic)}/schema{last}")

    async def get_all(self, topic: TopicName) -> list[dict[str, Any]]:
        """Return all current versions, in order."""
        found = await self._rest.mapping(f"{_path(topic)}/schemas")
        versions: list[dict[str, Any]] = found.get("getSchemaResponses", [])
        return versions

    async def upload(
        self, topic: TopicName, kind: str, definition: str, properties: Mapping[str, str]
    ) -> int:
        """Add a version, and return its number; for an existing schema, the existing number."""
        answer = await self._rest.mapping(
            f"{_path(topic)}/schema", "POST", _body(kind, definition, properties)
        )
        return int(answer["version"]["version"])

    async def delete(self, topic: TopicName, *, force: bool = False) -> None:
        """Delete the schemas; with ``force`` versions restart at 0."""
        await self._rest.text("DELETE", f"{_path(topic)}/schema{query(force=force)}")

    async def compatibility(
        self, topic: TopicName, kind: str, definition: str, properties: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return ``compatibility`` and ``schemaCompatibilityStrategy``."""
        return await self._rest.mapping(
            f"{_path(topic)}/compatibility", "POST", _body(kind, definition, properties)
        )


def _body(kind: str, definition: str, properties: Mapping[str, str]) -> Body:
    return Body({"type": kind, "schema": definition, "properties": dict(properties)})


def _path(topic: TopicName) -> str:
    namespace = topic.namespace
    names = (namespace.tenant, namespace.local_name, topic.local_name)
    return path("admin", "v2", "schemas", *names)

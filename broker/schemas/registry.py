"""The registry of schemas: versions of each topic, given out to producers and consumers.

Source: upstream SchemaRegistryServiceImpl.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.schemas.errors import (
    NO_AUTO_UPDATE,
    SCHEMA_ENFORCED,
    SchemaRefusal,
    SchemaRefusedError,
    active_without_schema,
    producer_text,
)
from broker.schemas.schema import Schema
from broker.stores.name_locks import NameLocks
from broker.stores.topic_schemas import StoredSchema
from server.connection.request_errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.policies.effective import EffectivePolicies
    from broker.schemas.checks import SchemaChecks
    from broker.stores.topic_schemas import TopicSchemas
    from proto.names import TopicName

_VERSION = struct.Struct(">q")
MAX_TOPIC_BYTES = 64 * 1024 * 1024
"""Definitions of one topic, all versions together; each costs VERSION_BYTES besides."""
VERSION_BYTES = 1_024
NO_VERSION = b""
# Checked as if only readers of the newest version mattered.
_CONSUMERS_CHECK_BACKWARD = ("BACKWARD", "FORWARD", "FORWARD_TRANSITIVE", "FULL")


def version_bytes(version: int) -> bytes:
    """Return a version as it travels: 8 bytes, big-endian."""
    return _VERSION.pack(version)


class SchemaRegistry:
    """The schemas of all topics. Partitions share those of their topic.

    Bound: MAX_TOPIC_BYTES for each topic; a schema beyond is refused.

    Args:
        schemas: The store.
        checks: Judge definitions and their compatibility.
        now_ms: Returns the time in ms since 1970.
    """

    def __init__(
        self, schemas: TopicSchemas, checks: SchemaChecks, now_ms: Callable[[], int]
    ) -> None:
        self._schemas = schemas
        self._checks = checks
        self._now_ms = now_ms
        self._locks: NameLocks[str] = NameLocks()

    # -- for commands -------------------------------------------------------------------------

    async def for_producer(
        self, topic: TopicName, schema: pb.Schema | None, policies: EffectivePolicies
    ) -> bytes:
        """Return the version that a producer's messages carry; empty without a schema.

        Raises:
            RequestError: The schema is refused.
            UnansweredRequestError: Profile pulsar never answers.
            StoreError: The store failed.
        """
        if schema is None:
            if policies.schema_validation_enforced and await self.get(topic) is not None:
                raise RequestError(pb.IncompatibleSchema, SCHEMA_ENFORCED)
            return NO_VERSION
        try:
            return version_bytes(await self.offer(topic, Schema.of(schema), policies))
        except SchemaRefusedError as error:
            raise RequestError(pb.IncompatibleSchema, producer_text(error.refusal)) from None

    async def for_consumer(
        self,
        topic: TopicName,
        schema: pb.Schema | None,
        policies: EffectivePolicies,
        *,
        active: bool,
    ) -> None:
        """Check a consumer's schema; it becomes a version of a topic that has none.

        Args:
            topic: The topic.
            schema: The consumer's; None is none.
            policies: Those in force for the topic.
            active: True if the topic has a producer, messages, or a consumer that does not
                consume with AUTO_CONSUME.

        Raises:
            RequestError: The schema is refused.
            UnansweredRequestError: Profile pulsar never answers.
            StoreError: The store failed.
        """
        if schema is None or schema.type == pb.Schema.AutoConsume:
            return
        try:
            await self._consume(topic, Schema.of(schema), policies, active=active)
        except SchemaRefusedError as error:
            raise RequestError(pb.IncompatibleSchema, error.refusal.text) from None

    async def _consume(
        self, topic: TopicName, schema: Schema, policies: EffectivePolicies, *, active: bool
    ) -> None:
        existing = await self.in_force(topic)
        if existing:
            strategy = policies.schema_strategy
            if strategy in _CONSUMERS_CHECK_BACKWARD:
                strategy = "BACKWARD"
            await self._checks.check(schema, existing, strategy)
        elif active:
            raise SchemaRefusedError(active_without_schema(schema.kind))
        else:
            await self.offer(topic, schema, policies)

    # -- versions -----------------------------------------------------------------------------

    async def in_force(self, topic: TopicName) -> Sequence[StoredSchema]:
        """Return the versions behind the last deletion, in order."""
        return _in_force(await self._schemas.of(schema_name(topic)))

    async def get(self, topic: TopicName, version: int | None = None) -> StoredSchema | None:
        """Return a version, None for the newest; None if there is none, or it was deleted."""
        known = await self.in_force(topic)
        if version is None:
            return known[-1] if known else None
        return next((one for one in known if one.version == version), None)

    async def offer(
        self,
        topic: TopicName,
        schema: Schema,
        policies: EffectivePolicies,
        *,
        may_add: bool | None = None,
    ) -> int:
        """Return the version of a schema; a new one is added if it is compatible.

        Args:
            topic: The topic.
            schema: What is offered.
            policies: Those in force for the topic.
            may_add: Whether a new one is taken; None for what the policies say.

        Raises:
            SchemaRefusedError: It is not taken.
            UnansweredRequestError: Profile pulsar never answers.
            StoreError: The store failed.
        """
        name = schema_name(topic)
        allowed = policies.allow_auto_update_schema if may_add is None else may_add
        async with self._locks.of(name):
            while True:
                known = await self._schemas.of(name)
                added = await self._version(known, schema, policies.schema_strategy, allowed)
                if isinstance(added, int):
                    return added
                if await self._schemas.add(name, added):
                    return added.version

    async def _version(
        self, known: Sequence[StoredSchema], schema: Schema, strategy: str, allowed: bool
    ) -> int | StoredSchema:
        """Return the version that a schema has, or the one to add."""
        existing = _in_force(known)
        same = await self._checks.version_of(schema, existing, strategy if allowed else None)
        if same is not None:
            return same
        if not allowed:
            raise SchemaRefusedError(NO_AUTO_UPDATE)
        size = sum(len(one.data) + VERSION_BYTES for one in known) + len(schema.data)
        if size > MAX_TOPIC_BYTES:
            text = f"the schemas of one topic may take {MAX_TOPIC_BYTES} bytes, versions included"
            raise SchemaRefusedError(SchemaRefusal(text))
        now = self._now_ms()
        return StoredSchema(len(known), schema.kind, schema.data, schema.properties, now)

    async def remove(self, topic: TopicName) -> int:
        """Put the schemas out of force; return the version that this takes."""
        name = schema_name(topic)
        async with self._locks.of(name):
            while True:
                version = len(await self._schemas.of(name))
                gone = StoredSchema(version, "NONE", b"", {}, self._now_ms(), deleted=True)
                if await self._schemas.add(name, gone):
                    return version

    async def delete(self, topic: TopicName) -> None:
        """Forget all versions, as when the topic is deleted; the next one is 0."""
        name = schema_name(topic)
        async with self._locks.of(name):
            await self._schemas.delete(name)


def schema_name(topic: TopicName) -> str:
    """Return the name under which a topic's schemas are kept: ``tenant/namespace/topic``."""
    return f"{topic.namespace}/{topic.partitioned_name.local_name}"


def _in_force(known: Sequence[StoredSchema]) -> Sequence[StoredSchema]:
    last = max((index for index, one in enumerate(known) if one.deleted), default=-1)
    return known[last + 1 :]

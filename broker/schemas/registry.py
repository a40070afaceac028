"""The schema registry: the versions of each topic's schema, checked for producers and consumers.

Source: upstream SchemaRegistryServiceImpl.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.schemas.errors import (
    NO_AUTO_UPDATE,
    SCHEMA_ENFORCED,
    TRUNCATED_KEY_VALUE,
    SchemaRefusal,
    SchemaRefusedError,
    active_without_schema,
    plain_text,
    producer_text,
)
from broker.schemas.schema import (
    FLOODGATE_SCHEMAS,
    NO_VERSION,
    Schema,
    TruncatedKeyValueError,
    version_bytes,
)
from broker.stores.changes import StoreError
from broker.stores.name_locks import NameLocks
from broker.stores.store import StoredSchema
from server.connection.request_errors import RequestError, UnansweredRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from broker.policies.effective import EffectivePolicies
    from broker.schemas.checks import SchemaChecks
    from broker.schemas.schema import SchemaRules
    from broker.stores.store import MetadataStore
    from proto.names import TopicName


MAX_TOPIC_BYTES = 64 * 1024 * 1024
"""Most bytes of a topic's definitions, all versions together; each version adds VERSION_BYTES."""
VERSION_BYTES = 65_536
# Checked as if only readers of the newest version mattered.
_CONSUMERS_CHECK_BACKWARD = ("BACKWARD", "FORWARD", "FORWARD_TRANSITIVE", "FULL")


class SchemaRegistry:
    """The schema versions of all topics; partitions share the schemas of their topic.

    Attributes:
        rules: The profile's rules.

    Bound: MAX_TOPIC_BYTES for each topic; further schemas are refused.

    Args:
        store: Holds the schemas.
        checks: Judge definitions and their compatibility.
        now_ms: Returns the time in ms since 1970.
        rules: The profile's rules.
    """

    def __init__(
        self,
        store: MetadataStore,
        checks: SchemaChecks,
        now_ms: Callable[[], int],
        rules: SchemaRules = FLOODGATE_SCHEMAS,
    ) -> None:
        self._store = store
        self._checks = checks
        self._now_ms = now_ms
        self.rules = rules
        self._locks: NameLocks[str] = NameLocks()

    # -- commands ------------------------------------------------------------------------------

    async def for_producer(
        self, topic: TopicName, schema: pb.Schema | None, policies: EffectivePolicies
    ) -> bytes:
        """Return the version of a producer's schema, added if it is new; empty without schema.

        Raises:
            RequestError: The schema is refused, or the store failed.
            UnansweredRequestError: Profile pulsar never answers.
        """
        truncated = UnansweredRequestError("a KEY_VALUE schema ends too early")
        with self._refusals(producer_text, truncated):
            if schema is not None:
                return version_bytes(await self.offer(topic, Schema.of(schema), policies))
            if policies.schema_validation_enforced and await self.get(topic) is not None:
                raise _incompatible(SCHEMA_ENFORCED)
            return NO_VERSION

    async def for_request(
        self, topic: TopicName, schema: pb.Schema, policies: EffectivePolicies
    ) -> bytes:
        """Answer GET_OR_CREATE_SCHEMA: return the version of a schema, which is added if it is new.

        Raises:
            RequestError: The schema is refused, or the store failed.
        """
        offered = Schema.of(schema)
        if offered.kind == "NONE":
            return await self.for_producer(topic, None, policies)
        truncated = RequestError(pb.UnknownError, "java.nio.BufferUnderflowException")
        with self._refusals(producer_text, truncated):
            return version_bytes(await self.offer(topic, offered, policies))

    async def for_consumer(
        self,
        topic: TopicName,
        schema: pb.Schema | None,
        policies: EffectivePolicies,
        *,
        active: bool,
    ) -> None:
        """Check a consumer's schema, or add it as the first version of the topic's schema.

        Args:
            topic: The topic.
            schema: The consumer's schema, if any.
            policies: The topic's effective policies.
            active: True if the topic has a producer, messages, or a consumer other than
                AUTO_CONSUME.

        Raises:
            RequestError: The schema is refused, or the store failed.
        """
        if schema is None or schema.type == pb.Schema.AutoConsume:
            return
        with self._refusals(plain_text, RequestError(pb.UnknownError, "")):
            await self._consume(topic, Schema.of(schema), policies, active=active)

    @contextmanager
    def _refusals(
        self, text_of: Callable[[SchemaRefusal], str], truncated: Exception
    ) -> Iterator[None]:
        """Convert errors in the ``with`` block to the error that a client receives.

        Args:
            text_of: Returns the text of a refusal.
            truncated: Profile pulsar's error for a KEY_VALUE schema whose data ends too early.
        """
        try:
            yield
        except SchemaRefusedError as error:
            raise _incompatible(text_of(error.refusal)) from None
        except TruncatedKeyValueError:
            by_name = self.rules.refuses_by_name
            raise (_incompatible(text_of(TRUNCATED_KEY_VALUE)) if by_name else truncated) from None
        except StoreError as error:
            raise RequestError(pb.MetadataError, str(error)) from None

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
            await self._offer_first(topic, schema, policies)

    async def _offer_first(
        self, topic: TopicName, schema: Schema, policies: EffectivePolicies
    ) -> None:
        try:
            await self.offer(topic, schema, policies)
        except SchemaRefusedError as error:
            if self.rules.checks_first_consumer or not error.refusal.invalid:
                raise

    # -- versions -----------------------------------------------------------------------------

    async def in_force(self, topic: TopicName) -> Sequence[StoredSchema]:
        """Return a topic's versions added since its schema was last deleted, the oldest first."""
        return _in_force(await self._store.schemas_of(schema_name(topic)))

    async def get(self, topic: TopicName, version: int | None = None) -> StoredSchema | None:
        """Return one version of a topic's schema; the newest if ``version`` is None.

        The result is None if the version does not exist or was deleted.
        """
        known = await self.in_force(topic)
        if version is None:
            return known[-1] if known else None
        return next((one for one in known if one.version == version), None)

    async def asked_for(self, topic: TopicName, version: int | None) -> StoredSchema | None:
        """Return the version of a topic's schema that answers a GET_SCHEMA.

        A ``version`` of None means the newest; the result is None if there is none.
        """
        if version is None and self.rules.shows_deletion:
            known = await self.history(topic)
            return known[-1] if known else None
        return await self.get(topic, version)

    async def history(self, topic: TopicName) -> Sequence[StoredSchema]:
        """Return all versions of a topic's schema, deletion marks included, the oldest first."""
        return await self._store.schemas_of(schema_name(topic))

    async def version_of(self, topic: TopicName, schema: Schema) -> int | None:
        """Return the version of an equal schema; None if there is none or it is invalid."""
        try:
            return await self._checks.version_of(schema, await self.in_force(topic), None)
        except (SchemaRefusedError, TruncatedKeyValueError):
            return None

    async def test(self, topic: TopicName, schema: Schema, policies: EffectivePolicies) -> None:
        """Check that a schema could become a topic's next version, without adding it.

        Raises:
            SchemaRefusedError: The schema is unreadable or incompatible.
            TruncatedKeyValueError: The data of a KEY_VALUE schema ends too early.
        """
        existing = await self.in_force(topic)
        await self._checks.version_of(schema, existing, policies.schema_strategy)

    async def offer(
        self,
        topic: TopicName,
        schema: Schema,
        policies: EffectivePolicies,
        *,
        may_add: bool | None = None,
    ) -> int:
        """Return a schema's version; add the schema if it is new and compatible.

        Args:
            topic: The topic.
            schema: The offered schema.
            policies: The topic's effective policies.
            may_add: Whether a new schema is accepted; None: according to the policies.

        Raises:
            SchemaRefusedError: The schema is refused.
            TruncatedKeyValueError: The data of a KEY_VALUE schema ends too early.
            StoreError: The store failed.
        """
        name = schema_name(topic)
        allowed = policies.allow_auto_update_schema if may_add is None else may_add
        async with self._locks.of(name):
            while True:
                known = await self._store.schemas_of(name)
                added = await self._version(known, schema, policies.schema_strategy, allowed)
                if isinstance(added, int):
                    return added
                if await self._store.add_schema(name, added):
                    return added.version

    async def _version(
        self, known: Sequence[StoredSchema], schema: Schema, strategy: str, allowed: bool
    ) -> int | StoredSchema:
        """Return the number of the version with an equal schema, or the new version to store."""
        existing = _in_force(known)
        same = await self._checks.version_of(schema, existing, strategy if allowed else None)
        if same is not None:
            return same
        if not allowed:
            raise SchemaRefusedError(NO_AUTO_UPDATE)
        now = self._now_ms()
        new = StoredSchema(len(known), schema.kind, schema.data, schema.properties, now)
        _check_room(known, new)
        return new

    async def remove(self, topic: TopicName) -> int:
        """Mark all versions of a topic's schema as deleted; return the mark's own version number.

        Raises:
            SchemaRefusedError: The topic has too many versions.
            StoreError: The store failed.
        """
        name = schema_name(topic)
        async with self._locks.of(name):
            while True:
                known = await self._store.schemas_of(name)
                gone = StoredSchema(len(known), "NONE", b"", {}, self._now_ms(), deleted=True)
                _check_room(known, gone)
                if await self._store.add_schema(name, gone):
                    return gone.version

    async def forget(self, topic: TopicName) -> None:
        """Delete the schemas of a deleted topic; do nothing for a deleted partition."""
        if topic.partition_index < 0:
            await self.delete(topic)

    async def delete(self, topic: TopicName) -> None:
        """Delete all versions of a topic's schema; numbering restarts at 0.

        Raises:
            StoreError: The store failed.
        """
        name = schema_name(topic)
        async with self._locks.of(name):
            await self._store.delete_schemas(name)


def _incompatible(text: str) -> RequestError:
    return RequestError(pb.IncompatibleSchema, text)


def schema_name(topic: TopicName) -> str:
    """Return the name under which a topic's schemas are stored: ``tenant/namespace/topic``."""
    return f"{topic.namespace}/{topic.partitioned_name.local_name}"


def _check_room(known: Sequence[StoredSchema], new: StoredSchema) -> None:
    if sum(one.size_bytes + VERSION_BYTES for one in (*known, new)) > MAX_TOPIC_BYTES:
        text = (
            f"the schemas of one topic may take {MAX_TOPIC_BYTES} bytes, {VERSION_BYTES} more "
            "for each version: delete them by force"
        )
        raise SchemaRefusedError(SchemaRefusal(text))


def _in_force(known: Sequence[StoredSchema]) -> Sequence[StoredSchema]:
    last = max((index for index, one in enumerate(known) if one.deleted), default=-1)
    return known[last + 1 :]

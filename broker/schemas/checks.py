"""Checks of a new schema version: valid, not stored yet, compatible with earlier versions."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from typing import TYPE_CHECKING, Protocol

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError

from broker.schemas.errors import (
    SchemaRefusal,
    SchemaRefusedError,
    other_halves,
    other_kind,
    other_root,
    unreadable_native,
)
from broker.schemas.schema import KEY_VALUE, Schema, halves
from broker.stores.store import StoredSchema

if TYPE_CHECKING:
    from collections.abc import Sequence

PROTOBUF_NATIVE = "PROTOBUF_NATIVE"
AVRO_KINDS = frozenset(("AVRO", "JSON", "PROTOBUF"))
"""Types with an Avro schema as definition."""
CLIENT_SIDE_KINDS = frozenset(("AUTO", "AUTO_CONSUME", "AUTO_PUBLISH"))
FREE_KINDS = frozenset(("NONE", "BYTES", "EXTERNAL", PROTOBUF_NATIVE, KEY_VALUE))
ALWAYS_COMPATIBLE = "ALWAYS_COMPATIBLE"
ALWAYS_INCOMPATIBLE = "ALWAYS_INCOMPATIBLE"


class AvroJudge(Protocol):
    """An interface that checks schemas with an Avro definition, outside the event loop."""

    async def judge(
        self,
        schema: Schema,
        alike: Sequence[StoredSchema],
        compared: Sequence[StoredSchema],
        strategy: str,
    ) -> int | None:
        """Check a schema; return the index in ``alike`` of an equal one, or None if it is new.

        Args:
            schema: A definition of a type in AVRO_KINDS.
            alike: Candidates for the same schema.
            compared: Schemas to be compatible with, the newest first.
            strategy: The compatibility strategy.

        Raises:
            SchemaRefusedError: The schema is unreadable or incompatible.
        """


class SchemaChecks:
    """The checks of a topic's new schema, for schemas of all types.

    Args:
        avro: Judges the types whose definition is an Avro schema.
    """

    def __init__(self, avro: AvroJudge) -> None:
        self._avro = avro

    async def version_of(
        self, schema: Schema, existing: Sequence[StoredSchema], strategy: str | None
    ) -> int | None:
        """Return the version of an equal schema; None if the schema is new and compatible.

        Args:
            schema: The offered schema.
            existing: Effective versions, in order.
            strategy: Compatibility strategy for a new schema; None: not checked.

        Raises:
            SchemaRefusedError: The schema is unreadable or incompatible.
            TruncatedKeyValueError: The data of a KEY_VALUE schema ends too early.
        """
        same = _same_bytes(existing, schema)
        if same is not None:
            return same
        return await self._judged(schema, existing, strategy, identical=True)

    async def check(self, schema: Schema, existing: Sequence[StoredSchema], strategy: str) -> None:
        """Check that a schema is compatible with the topic's versions in effect.

        Raises:
            SchemaRefusedError: The schema is unreadable or incompatible.
            TruncatedKeyValueError: The data of a KEY_VALUE schema ends too early.
        """
        await self._judged(schema, existing, strategy, identical=False)

    async def _judged(
        self,
        schema: Schema,
        existing: Sequence[StoredSchema],
        strategy: str | None,
        *,
        identical: bool,
    ) -> int | None:
        await self._check_readable(schema)
        refusal = None if strategy is None else _refusal_of_kinds(schema, existing, strategy)
        compared = () if refusal or strategy is None else _compared(existing, strategy)
        if schema.kind in AVRO_KINDS:
            alike = [one for one in existing if one.kind == schema.kind] if identical else []
            place = await self._avro.judge(schema, alike, compared, strategy or "")
            if place is not None:
                return alike[place].version
        if refusal is not None:
            raise SchemaRefusedError(refusal)
        for one in compared:
            await self._compare(schema, one, strategy or "")
        return None

    async def _check_readable(self, schema: Schema) -> None:
        check_readable(schema)
        if schema.kind == KEY_VALUE:
            for half in halves(schema):
                await self._judged(half, (), None, identical=False)
        elif schema.kind == PROTOBUF_NATIVE:
            reason = await asyncio.to_thread(unreadable, schema.data)
            if reason:
                raise SchemaRefusedError(unreadable_native(reason))

    async def _compare(self, schema: Schema, existing: StoredSchema, strategy: str) -> None:
        """Check that two schemas are compatible; their type has no Avro definition."""
        old = Schema(existing.kind, existing.data, existing.properties)
        if schema.kind == KEY_VALUE:
            before, now = halves(old), halves(schema)
            kinds = [(one.kind, other.kind) for one, other in zip(before, now, strict=True)]
            if any(one != other for one, other in kinds):
                raise SchemaRefusedError(other_halves(kinds[0], kinds[1]))
            for one, other in zip(before, now, strict=True):
                half = StoredSchema(existing.version, one.kind, one.data)
                await self._judged(other, (half,), strategy, identical=False)
        elif schema.kind == PROTOBUF_NATIVE:
            roots = await asyncio.to_thread(lambda: (_root(old), _root(schema)))
            if roots[0] != roots[1]:
                raise SchemaRefusedError(other_root(strategy, *roots))


def _root(schema: Schema) -> str:
    return root_message(schema.data)


def check_readable(schema: Schema) -> None:
    """Check that a schema's data is valid for its type; Avro definitions are not checked here.

    Raises:
        SchemaRefusedError: No schema of the type can have the definition.
    """
    kind, data = schema.kind, schema.data
    if kind in CLIENT_SIDE_KINDS:
        raise SchemaRefusedError(_invalid(f"Schema {kind} is a client-side schema type"))
    if kind in FREE_KINDS or kind in AVRO_KINDS:
        return
    if kind == "STRING":
        # The Python client sends null.
        if data not in (b"", b"null"):
            text = data.decode(errors="replace")
            raise SchemaRefusedError(
                _invalid(f"Invalid schema definition data for string schema : '{text}'")
            )
    elif data:
        raise SchemaRefusedError(
            _invalid(
                "Invalid schema definition data for primitive schemas :length of schema data "
                f"should be zero, but {len(data)} bytes is found"
            )
        )


def _invalid(text: str) -> SchemaRefusal:
    return SchemaRefusal(text, invalid=True)


def _same_bytes(existing: Sequence[StoredSchema], schema: Schema) -> int | None:
    found = (one.version for one in existing if (one.kind, one.data) == (schema.kind, schema.data))
    return next(found, None)


def _refusal_of_kinds(
    schema: Schema, existing: Sequence[StoredSchema], strategy: str
) -> SchemaRefusal | None:
    """Return the reason to refuse a schema because of its type or strategy alone.

    None if the definitions must be compared.
    """
    compared = _compared(existing, strategy)
    for one in compared:
        if one.kind != schema.kind:
            return other_kind(one.kind, schema.kind)
    if compared and strategy == ALWAYS_INCOMPATIBLE and schema.kind not in AVRO_KINDS:
        return SchemaRefusal(f"Schema compatibility strategy is {ALWAYS_INCOMPATIBLE}")
    return None


def _compared(existing: Sequence[StoredSchema], strategy: str) -> Sequence[StoredSchema]:
    """Return the versions that a new schema must be compatible with, the newest first."""
    if strategy == ALWAYS_COMPATIBLE:
        return ()
    return existing[::-1] if strategy.endswith("_TRANSITIVE") else existing[-1:]


_SET, _ROOT, _FILE = "fileDescriptorSet", "rootMessageTypeName", "rootFileDescriptorName"


def unreadable(data: bytes) -> str:
    """Return the reason why a PROTOBUF_NATIVE definition is invalid; empty if it is valid."""
    try:
        given = json.loads(data)
    except (ValueError, RecursionError) as error:
        return f"it is no JSON: {error}"
    if not isinstance(given, dict) or not isinstance(given.get(_SET), str):
        return f"it has no {_SET}"
    if not isinstance(given.get(_ROOT), str) or not isinstance(given.get(_FILE), str):
        return f"it has no {_ROOT} or no {_FILE}"
    try:
        descriptors = FileDescriptorSet.FromString(base64.b64decode(given[_SET], validate=True))
    except (binascii.Error, DecodeError) as error:
        return f"its {_SET} cannot be read: {error}"
    if given[_FILE] not in (file.name for file in descriptors.file):
        return f"its {_SET} lacks the file {given[_FILE]!r}"
    return ""


def root_message(data: bytes) -> str:
    """Return the name of the root message of a valid PROTOBUF_NATIVE definition."""
    name: str = json.loads(data)[_ROOT]
    return name

"""Reasons to refuse schemas, with the error messages recorded from a Pulsar broker."""

from __future__ import annotations

from typing import NamedTuple


class SchemaRefusal(NamedTuple):
    """The reason why a schema is refused: error message and cause.

    Attributes:
        text: A sentence, upstream's where clients may depend on it.
        cause: The real broker's cause, with its Java class in front; empty without a cause.
        invalid: True for an unreadable definition, False for an incompatible definition.
    """

    text: str
    cause: str = ""
    invalid: bool = False


class SchemaRefusedError(Exception):
    """A schema is refused because it is unreadable, incompatible or not allowed.

    Attributes:
        refusal: The reason.
    """

    def __init__(self, refusal: SchemaRefusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


_INCOMPATIBLE = "org.apache.pulsar.broker.service.schema.exceptions.IncompatibleSchemaException"


def producer_text(refusal: SchemaRefusal) -> str:
    """Return a refusal's text as in a Pulsar broker's answer to PRODUCER."""
    if refusal.invalid:
        return caused_text(refusal)
    text = f"{_INCOMPATIBLE}: {refusal.text}"
    return f"{text} caused by {text}"


def plain_text(refusal: SchemaRefusal) -> str:
    """Return a refusal's text as in a Pulsar broker's answer to SUBSCRIBE."""
    return refusal.text


def caused_text(refusal: SchemaRefusal) -> str:
    """Return a refusal's text with its cause, if it has one."""
    return f"{refusal.text} caused by {refusal.cause}" if refusal.cause else refusal.text


def other_kind(existing: str, new: str) -> SchemaRefusal:
    """Return the reason to refuse a schema whose type differs from the topic's schema."""
    return SchemaRefusal(
        f"Incompatible schema: exists schema type {existing}, new schema type {new}"
    )


def active_without_schema(kind: str) -> SchemaRefusal:
    """Return the reason to refuse a consumer's schema on a topic in use that has no schema."""
    return SchemaRefusal(
        f"Failed to add schema to an active topic with empty(BYTES) schema: new schema type {kind}"
    )


def unreadable_native(reason: str) -> SchemaRefusal:
    """Return the reason to refuse an invalid PROTOBUF_NATIVE definition."""
    cause = f"org.apache.pulsar.client.api.SchemaSerializationException: {reason}"
    return SchemaRefusal("deserialize ProtobufNative Schema failed", cause, invalid=True)


def other_root(strategy: str, existing: str, new: str) -> SchemaRefusal:
    """Return the reason to refuse a PROTOBUF_NATIVE schema with another root message."""
    return SchemaRefusal(
        f"Protobuf root message change is not allowed under the '{strategy}' strategy. "
        f"Original message name: '{existing}', new message name: '{new}'."
    )


def other_halves(key: tuple[str, str], value: tuple[str, str]) -> SchemaRefusal:
    """Return the reason to refuse a KEY_VALUE schema whose key type or value type has changed.

    Each argument holds the earlier and the new type.
    """
    return SchemaRefusal(
        "Key schemas or Value schemas are different schema type, from key schema type is "
        f"{key[0]} and to key schema is {key[1]}, from value schema is {value[0]} and to value "
        f"schema is {value[1]}"
    )


TRUNCATED_KEY_VALUE = SchemaRefusal(
    "Invalid schema definition data for KEY_VALUE schema", "its data ends too early", invalid=True
)
NO_AUTO_UPDATE = SchemaRefusal("Schema not found and schema auto updating is disabled.")
SCHEMA_ENFORCED = (
    "Producers cannot connect or send message without a schema to topics with a schema"
    "when SchemaValidationEnforced is enabled"
)

"""The refusals of schemas, with the texts that were recorded of a real broker."""

from __future__ import annotations

from typing import NamedTuple


class SchemaRefusal(NamedTuple):
    """A reason why a schema is refused.

    Attributes:
        text: One sentence, upstream's own where clients may know it.
        cause: What the real broker names behind it, its Java class in front; empty for nothing.
        invalid: True if the definition cannot be read; else it is incompatible.
    """

    text: str
    cause: str = ""
    invalid: bool = False


class SchemaRefusedError(Exception):
    """A schema is refused.

    Attributes:
        refusal: Why.
    """

    def __init__(self, refusal: SchemaRefusal) -> None:
        super().__init__(refusal.text)
        self.refusal = refusal


_INCOMPATIBLE = "org.apache.pulsar.broker.service.schema.exceptions.IncompatibleSchemaException"


def producer_text(refusal: SchemaRefusal) -> str:
    """Return a refusal as PRODUCER answers it."""
    if refusal.invalid:
        return caused_text(refusal)
    text = f"{_INCOMPATIBLE}: {refusal.text}"
    return f"{text} caused by {text}"


def caused_text(refusal: SchemaRefusal) -> str:
    """Return a refusal with its cause, if it has one."""
    return f"{refusal.text} caused by {refusal.cause}" if refusal.cause else refusal.text


def other_kind(existing: str, new: str) -> SchemaRefusal:
    """Return the refusal of a schema whose type is not that of the topic's."""
    return SchemaRefusal(
        f"Incompatible schema: exists schema type {existing}, new schema type {new}"
    )


def active_without_schema(kind: str) -> SchemaRefusal:
    """Return the refusal of a consumer's schema on a topic that is in use without one."""
    return SchemaRefusal(
        f"Failed to add schema to an active topic with empty(BYTES) schema: new schema type {kind}"
    )


NO_AUTO_UPDATE = SchemaRefusal("Schema not found and schema auto updating is disabled.")
SCHEMA_ENFORCED = (
    "Producers cannot connect or send message without a schema to topics with a schema"
    "when SchemaValidationEnforced is enabled"
)

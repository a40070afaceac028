"""The compatibility of definitions, by the library's rules with Java's differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avro.compatibility import (
    ReaderWriterCompatibilityChecker,
    SchemaCompatibilityResult,
    SchemaCompatibilityType,
    check_schema_names,
)
from avro.schema import EnumSchema, RecordSchema

from broker.schemas.avro.definition import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from avro.schema import Schema

COMPATIBLE = SchemaCompatibilityType.compatible


class IncompatibleDefinitionsError(Exception):
    """A reader's definition does not read a writer's data.

    Attributes:
        writer: The writer's definition.
        reader: The reader's definition.
    """

    def __init__(self, writer: Schema, reader: Schema) -> None:
        super().__init__(
            f"Unable to read schema: \n{shown(writer)}\nusing schema:\n{shown(reader)}"
        )
        self.writer = writer
        self.reader = reader


def check(new: Schema, existing: Sequence[Schema], strategy: str) -> None:
    """Check a new definition against earlier definitions, the newest first.

    Raises:
        IncompatibleDefinitionsError: The first incompatible pair.
    """
    for writer, reader in _pairs(new, existing, strategy.removesuffix("_TRANSITIVE")):
        if strategy == "ALWAYS_INCOMPATIBLE" or not reads(reader, writer):
            raise IncompatibleDefinitionsError(writer, reader)


def _pairs(
    new: Schema, existing: Sequence[Schema], direction: str
) -> Iterator[tuple[Schema, Schema]]:
    """Yield writers and their readers in the order of Java's library."""
    for old in existing:
        if direction in ("FORWARD", "FULL"):
            yield new, old
        if direction in ("BACKWARD", "FULL"):
            yield old, new
        if direction == "ALWAYS_INCOMPATIBLE":
            yield new, new


def reads(reader: Schema, writer: Schema) -> bool:
    """Return True if a reader's definition reads data of a writer's definition."""
    return _Checker().get_compatibility(reader, writer).compatibility is COMPATIBLE


class _Checker(ReaderWriterCompatibilityChecker):
    """The library's checker with Java's observed differences.

    Names of records and symbols missing from a reader's enum do not count. The checker is faster
    than the library, which searches all fields for each field, and whose cache has a single hash
    for all pairs of a definition with itself.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._found: dict[tuple[int, int], SchemaCompatibilityResult] = {}

    def get_compatibility(
        self,
        reader: Schema,
        writer: Schema,
        reference_token: str = ReaderWriterCompatibilityChecker.ROOT_REFERENCE_TOKEN,
        location: list[str] | None = None,
    ) -> SchemaCompatibilityResult:
        """Compare two definitions; a pair already under comparison counts as compatible."""
        pair = (id(reader), id(writer))
        if pair not in self._found:
            self._found[pair] = SchemaCompatibilityResult(COMPATIBLE)
            here = [*(location or ()), reference_token]
            self._found[pair] = self.calculate_compatibility(reader, writer, here)
        return self._found[pair]

    def calculate_compatibility(
        self, reader: Schema, writer: Schema, location: list[str]
    ) -> SchemaCompatibilityResult:
        """Compare two definitions."""
        if isinstance(reader, RecordSchema) and isinstance(writer, RecordSchema):
            return self.check_reader_writer_record_fields(reader, writer, location)
        if isinstance(reader, EnumSchema) and isinstance(writer, EnumSchema):
            return check_schema_names(reader, writer, location)
        return super().calculate_compatibility(reader, writer, location)

    def check_reader_writer_record_fields(
        self, reader: RecordSchema, writer: RecordSchema, location: list[str]
    ) -> SchemaCompatibilityResult:
        """Compare the fields of two records; the first incompatible field decides."""
        written = writer.fields_dict
        for field in reader.fields:
            names = (field.name, *(field.props.get("aliases") or ()))
            source = next((written[name] for name in names if name in written), None)
            if source is not None:
                result = self.get_compatibility(field.type, source.type, field.name, location)
                if result.compatibility is not COMPATIBLE:
                    return result
            elif not field.has_default:
                return SchemaCompatibilityResult(SchemaCompatibilityType.incompatible)
        return SchemaCompatibilityResult(COMPATIBLE)

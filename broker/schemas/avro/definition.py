"""Avro definitions: parsed by the avro package, written and compared as Avro's Java library does.

The library parses and validates; its classes are read here. Names are checked here, by Java's rule:
any letter, digit, ``_`` or ``$``. Compatibility has the library's rules with Java's differences.
"""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING

from avro.compatibility import (
    ReaderWriterCompatibilityChecker,
    SchemaCompatibilityResult,
    SchemaCompatibilityType,
    check_schema_names,
)
from avro.errors import AvroException
from avro.schema import (
    ArraySchema,
    EnumSchema,
    FixedSchema,
    MapSchema,
    NamedSchema,
    PrimitiveSchema,
    RecordSchema,
    Schema,
    UnionSchema,
    make_avsc_object,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from avro.schema import Field, Schema

# The library recurses several calls a level; Python ends a recursion at 1,000.
DEEP = "it is nested too deeply"
_PARTS = frozenset(
    ("type", "name", "namespace", "doc", "fields", "items", "values", "symbols", "size")
)
_WRITTEN_APART = frozenset(("aliases", "default", "order"))


class UnreadableDefinitionError(Exception):
    """A definition is not a valid Avro schema; the text says why, in one sentence."""


def read(data: bytes) -> Schema:
    """Parse and validate an Avro definition, and return it.

    Raises:
        UnreadableDefinitionError: The data is no Avro schema.
    """
    try:
        with warnings.catch_warnings():
            # Unknown logical types are kept unchanged.
            warnings.simplefilter("ignore")
            schema = make_avsc_object(json.loads(data), validate_names=False)
        # Writing checks every name.
        written(schema)
    except RecursionError:
        raise UnreadableDefinitionError(DEEP) from None
    except (AvroException, ValueError, TypeError, AttributeError) as error:
        raise UnreadableDefinitionError(str(error) or type(error).__name__) from None
    return schema


def written(schema: Schema, *, comparable: bool = False) -> object:
    """Return a parsed definition as JSON text, with the key order of Avro's Java library.

    Each named type is defined once; later uses have only the name.

    Args:
        schema: The parsed definition.
        comparable: Leave out docs and aliases, which may differ between equal schemas.
    """
    return _Writer(comparable).schema(schema, "")


class _Writer:
    def __init__(self, comparable: bool) -> None:
        self._comparable = comparable
        self._defined: set[str] = set()

    def schema(self, schema: Schema, space: str) -> object:
        if isinstance(schema, UnionSchema):
            return [self.schema(branch, space) for branch in schema.schemas]
        if isinstance(schema, NamedSchema):
            return self._named(schema, space)
        json_object: dict[str, object] = {"type": schema.type}
        if isinstance(schema, ArraySchema):
            json_object["items"] = self.schema(schema.items, space)
        elif isinstance(schema, MapSchema):
            json_object["values"] = self.schema(schema.values, space)
        json_object.update(_others(schema.props))
        plain = isinstance(schema, PrimitiveSchema) and len(json_object) == 1
        return schema.type if plain else json_object

    def _named(self, schema: NamedSchema, space: str) -> object:
        own_space, _, name = schema.fullname.rpartition(".")
        for part in schema.fullname.split("."):
            check_name(part)
        if schema.fullname in self._defined:
            return name if own_space == space else schema.fullname
        self._defined.add(schema.fullname)
        json_object: dict[str, object] = {"type": schema.type, "name": name}
        if own_space != space:
            json_object["namespace"] = own_space
        self._doc(json_object, schema.props.get("doc"))
        if isinstance(schema, EnumSchema):
            _check_names(schema.symbols)
            json_object["symbols"] = list(schema.symbols)
            if "default" in schema.props:
                json_object["default"] = schema.props["default"]
        elif isinstance(schema, FixedSchema):
            json_object["size"] = schema.size
        elif isinstance(schema, RecordSchema):
            json_object["fields"] = [self._field(field, own_space) for field in schema.fields]
        json_object.update(_others(schema.props))
        self._aliases(json_object, schema.props)
        return json_object

    def _field(self, field: Field, space: str) -> object:
        check_name(field.name)
        json_object: dict[str, object] = {
            "name": field.name,
            "type": self.schema(field.type, space),
        }
        self._doc(json_object, field.props.get("doc"))
        if field.has_default:
            json_object["default"] = field.default
        if field.props.get("order", "ascending") != "ascending":
            json_object["order"] = field.props["order"]
        self._aliases(json_object, field.props)
        json_object.update(_others(field.props))
        return json_object

    def _doc(self, json_object: dict[str, object], doc: object) -> None:
        if isinstance(doc, str) and not self._comparable:
            json_object["doc"] = doc

    def _aliases(self, json_object: dict[str, object], props: Mapping[str, object]) -> None:
        if props.get("aliases") and not self._comparable:
            json_object["aliases"] = props["aliases"]


def _others(props: Mapping[str, object]) -> dict[str, object]:
    return {
        key: value
        for key, value in props.items()
        if key not in _PARTS and key not in _WRITTEN_APART
    }


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        check_name(name)


def check_name(name: str) -> None:
    """Check a name, or one dotted part of a name, by the rules of Avro's Java library.

    Raises:
        UnreadableDefinitionError: The name is invalid.
    """
    if not name:
        raise UnreadableDefinitionError("Empty name")
    if not _may_begin(name[0]):
        raise UnreadableDefinitionError(f"Illegal initial character: {name}")
    if not all(_may_begin(character) or character.isdecimal() for character in name):
        raise UnreadableDefinitionError(f"Illegal character in: {name}")


def _may_begin(character: str) -> bool:
    return character.isalpha() or character in "_$"


def shown(schema: Schema) -> str:
    """Return a parsed definition as indented JSON, exactly as Avro's Java library formats it."""
    return _lines(written(schema), "")


def _lines(value: object, indent: str) -> str:
    if isinstance(value, dict):
        inner = f"{indent}  "
        pairs = [f"{inner}{_text(key)} : {_lines(one, inner)}" for key, one in value.items()]
        return "{\n" + ",\n".join(pairs) + f"\n{indent}}}" if pairs else "{ }"
    if isinstance(value, list):
        return "[ " + ", ".join(_lines(one, indent) for one in value) + " ]" if value else "[ ]"
    return _text(value)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


COMPATIBLE = SchemaCompatibilityType.compatible


class IncompatibleDefinitionsError(Exception):
    """Data written with one Avro definition cannot be read with another.

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
    """Check that a new definition is compatible with earlier definitions, the newest first.

    Raises:
        IncompatibleDefinitionsError: The first incompatible pair.
    """
    for writer, reader in _pairs(new, existing, strategy.removesuffix("_TRANSITIVE")):
        if strategy == "ALWAYS_INCOMPATIBLE" or not reads(reader, writer):
            raise IncompatibleDefinitionsError(writer, reader)


def _pairs(
    new: Schema, existing: Sequence[Schema], direction: str
) -> Iterator[tuple[Schema, Schema]]:
    """Yield pairs (writer, reader) of definitions to compare, in the order of Java's library."""
    for old in existing:
        if direction in ("FORWARD", "FULL"):
            yield new, old
        if direction in ("BACKWARD", "FULL"):
            yield old, new
        if direction == "ALWAYS_INCOMPATIBLE":
            yield new, new


def reads(reader: Schema, writer: Schema) -> bool:
    """Return True if data written with ``writer`` can be read with ``reader``."""
    return _Checker().get_compatibility(reader, writer).compatibility is COMPATIBLE


class _Checker(ReaderWriterCompatibilityChecker):
    """The avro package's compatibility checker, changed to decide like the Java library.

    Different names of records, and symbols that a reader's enum lacks, are no incompatibility. The
    checker is faster than the library, which searches all fields for each field, and whose cache
    has a single hash for all pairs of a definition with itself.
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
        """Compare two definitions; a pair that is being compared already counts as compatible."""
        pair = (id(reader), id(writer))
        if pair not in self._found:
            self._found[pair] = SchemaCompatibilityResult(COMPATIBLE)
            here = [*(location or ()), reference_token]
            self._found[pair] = self.calculate_compatibility(reader, writer, here)
        return self._found[pair]

    def calculate_compatibility(
        self, reader: Schema, writer: Schema, location: list[str]
    ) -> SchemaCompatibilityResult:
        if isinstance(reader, RecordSchema) and isinstance(writer, RecordSchema):
            return self.check_reader_writer_record_fields(reader, writer, location)
        if isinstance(reader, EnumSchema) and isinstance(writer, EnumSchema):
            return check_schema_names(reader, writer, location)
        return super().calculate_compatibility(reader, writer, location)

    def check_reader_writer_record_fields(
        self, reader: RecordSchema, writer: RecordSchema, location: list[str]
    ) -> SchemaCompatibilityResult:
        """Compare the fields of two records; return the first incompatibility."""
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

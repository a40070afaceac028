"""The manifest of a corpus: how many topics each namespace has, and their topics hash.

It is written last, so that a directory with a manifest is a whole corpus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import google_crc32c
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, Field, ValidationError

from loadgen.errors import UsageError
from loadgen.plan.clients import Namespace
from loadgen.stored import write_whole
from proto.topic_hash import format_hash, topics_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

MANIFEST_NAME, _OLDER_NAME = "_manifest.json", "manifest.json"
"""Spark and Arrow take each file of a folder for rows, unless its name begins with ``_`` or a dot;
that of an older corpus does not."""
_PERSISTENT = "persistent://"


class Listing(BaseModel, frozen=True):
    """A listing: number of names, their topics hash, sum of their lengths."""

    topics: int
    hash: str
    name_bytes: int


class NamespaceEntry(Listing, frozen=True):
    """The topics of one namespace.

    Attributes:
        persistent: The listing of persistent topics, where there are others beside them.
    """

    persistent: Listing | None = Field(default=None, exclude_if=lambda listing: listing is None)

    @property
    def asked(self) -> Listing:
        """The listing that a client is answered with: it asks for persistent topics."""
        return self.persistent or self

    def expected(self, name: str) -> Namespace:
        """Return the namespace as a run asks for it, with what right answers hold."""
        return Namespace(name=name, topics=self.asked.topics, hash=self.asked.hash)


Entry: TypeAlias = tuple[str, NamespaceEntry]


class Manifest(BaseModel, frozen=True):
    """The contents of a corpus, and what it was made from.

    Attributes:
        seed: None of topics that nobody made up.
        shape: The proportions of synthetic topics, or where others come from.
    """

    schema_version: Literal[1]
    seed: int | None
    topics: int
    shape: dict[str, Any] = Field(default_factory=dict)
    namespaces: dict[str, NamespaceEntry]

    @property
    def name_bytes(self) -> int:
        """Sum of the lengths of all names."""
        return sum(entry.name_bytes for entry in self.namespaces.values())

    @property
    def tenants(self) -> set[str]:
        """Names of the tenants that hold the namespaces."""
        return {name.partition("/")[0] for name in self.namespaces}


def namespace_entry(names: pa.ChunkedArray) -> NamespaceEntry:
    """Return the manifest entry of a namespace's names, which are in the order of their bytes."""
    persistent = pc.starts_with(names, _PERSISTENT)
    others = pc.all(persistent).as_py() is False
    asked = _listing(names.filter(persistent)) if others else None
    return NamespaceEntry(**vars(_listing(names)), persistent=asked)


def _listing(names: pa.ChunkedArray) -> Listing:
    name_bytes = pc.sum(pc.binary_length(names)).as_py() or 0
    return Listing(topics=len(names), hash=_hash(names), name_bytes=name_bytes)


def _hash(names: pa.ChunkedArray) -> str:
    """Return the topics hash of sorted names; ASCII ones are in Java's order already."""
    if not pc.all(pc.string_is_ascii(names)).as_py():
        return topics_hash(names.to_pylist())
    value, separator = 0, b""
    for chunk in filter(len, names.chunks):
        joined = pc.binary_join(pa.ListArray.from_arrays([0, len(chunk)], chunk), ",")
        value = google_crc32c.extend(value, separator + joined[0].as_buffer().to_pybytes())
        separator = b","
    return format_hash(value)


def manifest_path(directory: Path) -> Path:
    """Return where the manifest of a corpus is."""
    older = directory / _OLDER_NAME
    return older if older.is_file() else directory / MANIFEST_NAME


def write_manifest(
    directory: Path, seed: int | None, shape: Mapping[str, Any], entries: Iterable[Entry]
) -> Manifest:
    """Write what is in a corpus, from the entries of its namespaces, into its directory."""
    found = dict(sorted(entries, key=lambda entry: entry[0]))
    manifest = Manifest(
        schema_version=1,
        seed=seed,
        topics=sum(entry.topics for entry in found.values()),
        shape=dict(shape),
        namespaces=found,
    )
    write_whole(directory / MANIFEST_NAME, f"{manifest.model_dump_json(indent=1)}\n")
    return manifest


def read_manifest(directory: Path) -> Manifest:
    """Return the manifest of a corpus.

    Raises:
        UsageError: There is none, or it is not one of this version.
    """
    path = manifest_path(directory)
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except NotADirectoryError:
        said = "is a file; a corpus is a folder, as `loadgen topics` makes it"
        raise UsageError(f"{directory} {said}") from None
    except FileNotFoundError:
        said = f"{directory} is not a topic corpus: it has no {MANIFEST_NAME}"
        raise UsageError(f"{said}. Make one with: loadgen topics --out {directory}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        said = f"{path} is not a corpus manifest: {place}: {first['msg']}"
        raise UsageError(f"{said}. Make the corpus again with: loadgen topics") from None


def expected_namespaces(corpus: Path) -> tuple[Namespace, ...]:
    """Return the namespaces of a corpus as a run asks for them, with what right answers hold."""
    return tuple(entry.expected(name) for name, entry in read_manifest(corpus).namespaces.items())

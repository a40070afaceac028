"""The manifest of a corpus: each namespace's number of topics and topics hash.

It is written last, so that a directory with a manifest is a complete corpus.
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
"""Spark and Arrow read each file of a folder as rows, unless the name begins with ``_`` or a dot;
an older corpus's name does not.
"""
_PERSISTENT = "persistent://"


class Listing(BaseModel, frozen=True):
    """The contents of a correct listing: number, topics hash and total length of its names."""

    topics: int
    hash: str
    name_bytes: int


class NamespaceEntry(Listing, frozen=True):
    """The entry of a namespace in the manifest.

    Attributes:
        persistent: The listing of the persistent topics only; None if all topics are persistent.
    """

    persistent: Listing | None = Field(default=None, exclude_if=lambda listing: listing is None)

    @property
    def asked(self) -> Listing:
        """The listing that clients request, which has only the persistent topics."""
        return self.persistent or self

    def expected(self, name: str) -> Namespace:
        """Return the namespace with the number and hash of its persistent topics."""
        return Namespace(name=name, topics=self.asked.topics, hash=self.asked.hash)


Entry: TypeAlias = tuple[str, NamespaceEntry]


class Manifest(BaseModel, frozen=True):
    """The contents of a corpus, and how it was made.

    Attributes:
        seed: The seed of generated topics; None for other topics.
        shape: The proportions of generated topics, or the origin of others.
    """

    schema_version: Literal[1]
    seed: int | None
    topics: int
    shape: dict[str, Any] = Field(default_factory=dict)
    namespaces: dict[str, NamespaceEntry]

    @property
    def name_bytes(self) -> int:
        """The total length of all topic names in the corpus, in bytes."""
        return sum(entry.name_bytes for entry in self.namespaces.values())

    @property
    def tenants(self) -> set[str]:
        """The names of the tenants of all namespaces."""
        return {name.partition("/")[0] for name in self.namespaces}


def namespace_entry(names: pa.ChunkedArray) -> NamespaceEntry:
    """Compute the manifest entry of a namespace from its topic names, sorted by their bytes."""
    persistent = pc.starts_with(names, _PERSISTENT)
    others = pc.all(persistent).as_py() is False
    asked = _listing(names.filter(persistent)) if others else None
    return NamespaceEntry(**vars(_listing(names)), persistent=asked)


def _listing(names: pa.ChunkedArray) -> Listing:
    name_bytes = pc.sum(pc.binary_length(names)).as_py() or 0
    return Listing(topics=len(names), hash=_hash(names), name_bytes=name_bytes)


def _hash(names: pa.ChunkedArray) -> str:
    """Compute Pulsar's topics hash of topic names that are sorted by their bytes.

    ASCII names are then also in the order in which Java sorts, so they are hashed in bulk.
    """
    if not pc.all(pc.string_is_ascii(names)).as_py():
        return topics_hash(names.to_pylist())
    value, separator = 0, b""
    for chunk in filter(len, names.chunks):
        joined = pc.binary_join(pa.ListArray.from_arrays([0, len(chunk)], chunk), ",")
        value = google_crc32c.extend(value, separator + joined[0].as_buffer().to_pybytes())
        separator = b","
    return format_hash(value)


def manifest_path(directory: Path) -> Path:
    """Return the path of the manifest in the directory of a corpus."""
    older = directory / _OLDER_NAME
    return older if older.is_file() else directory / MANIFEST_NAME


def write_manifest(
    directory: Path, seed: int | None, shape: Mapping[str, Any], entries: Iterable[Entry]
) -> Manifest:
    """Write the manifest of a corpus, given the entries of its namespaces."""
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
    """Read the manifest of a corpus.

    Raises:
        UsageError: The manifest is missing, or of another version.
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
    """Return the namespaces of a corpus, with the number and hash of their persistent topics."""
    return tuple(entry.expected(name) for name, entry in read_manifest(corpus).namespaces.items())

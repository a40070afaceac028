"""The manifest of a corpus: how many topics each namespace has, and their topics hash.

It is written last, so that a directory with a manifest is a whole corpus.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import google_crc32c
import pyarrow.compute as pc
from pydantic import TypeAdapter, ValidationError

from loadgen.errors import UsageError
from loadgen.plan.clients import Namespace
from proto.topic_hash import format_hash, topics_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

MANIFEST_NAME, _OLDER_NAME = "_manifest.json", "manifest.json"
"""Spark and Arrow take each file of a folder for rows, unless its name begins with ``_`` or a dot;
that of an older corpus does not."""
SCHEMA_VERSION = 1
_PERSISTENT = "persistent://"


@dataclass(frozen=True)
class Listing:
    """A listing: number of names, their topics hash, sum of their lengths."""

    topics: int
    hash: str
    name_bytes: int


@dataclass(frozen=True)
class NamespaceEntry(Listing):
    """The topics of one namespace.

    Attributes:
        persistent: The listing of persistent topics, where there are others beside them.
    """

    persistent: Listing | None = None

    @property
    def asked(self) -> Listing:
        """The listing that a client is answered with: it asks for persistent topics."""
        return self.persistent or self


Entry: TypeAlias = tuple[str, NamespaceEntry]


@dataclass(frozen=True)
class Manifest:
    """The contents of a corpus, and what it was made from.

    Attributes:
        seed: None of topics that nobody made up.
        shape: The proportions of synthetic topics, or where others come from.
    """

    seed: int | None
    topics: int
    shape: dict[str, Any]
    namespaces: dict[str, NamespaceEntry]

    @property
    def name_bytes(self) -> int:
        """Sum of the lengths of all names."""
        return sum(entry.name_bytes for entry in self.namespaces.values())

    @property
    def tenants(self) -> set[str]:
        """Names of the tenants that hold the namespaces."""
        return {name.partition("/")[0] for name in self.namespaces}


_FORM = TypeAdapter(Manifest)


def namespace_entry(names: pa.Array) -> NamespaceEntry:
    """Return the manifest entry of a namespace's names, which are in the order of their bytes."""
    persistent = pc.starts_with(names, _PERSISTENT)
    others = pc.all(persistent).as_py() is False
    asked = Listing(*_figures(names.filter(persistent))) if others else None
    return NamespaceEntry(*_figures(names), asked)


def _figures(names: pa.Array) -> tuple[int, str, int]:
    """Return number, topics hash and length of names."""
    return len(names), _hash(names), pc.sum(pc.binary_length(names)).as_py() or 0


def _hash(names: pa.Array) -> str:
    """Return the topics hash of sorted names; of ASCII ones Arrow joins the text itself."""
    if len(names) == 0 or not pc.all(pc.string_is_ascii(names)).as_py():
        return topics_hash(names.to_pylist())
    joined = pc.binary_join_element_wise(",", names, "")
    start, end = (int.from_bytes(_offset(joined, index), "little") for index in (0, len(joined)))
    text = joined.buffers()[2].slice(start + 1, end - start - 1)
    return format_hash(google_crc32c.value(memoryview(text).tobytes()))


def _offset(names: pa.StringArray, index: int) -> bytes:
    return bytes(memoryview(names.buffers()[1])[4 * (names.offset + index) :][:4])


def manifest_path(directory: Path) -> Path:
    """Return where the manifest of a corpus is."""
    older = directory / _OLDER_NAME
    return older if older.is_file() else directory / MANIFEST_NAME


def write_manifest(
    directory: Path, seed: int | None, shape: Mapping[str, Any], entries: Iterable[Entry]
) -> Manifest:
    """Write what is in a corpus, from the entries of its namespaces, into its directory."""
    namespaces = dict(sorted(entries, key=lambda entry: entry[0]))
    topics = sum(entry.topics for entry in namespaces.values())
    manifest = Manifest(seed, topics, dict(shape), namespaces)
    content = {"schema_version": SCHEMA_VERSION, **asdict(manifest)}
    for entry in content["namespaces"].values():
        if entry["persistent"] is None:
            del entry["persistent"]
    (directory / MANIFEST_NAME).write_text(f"{json.dumps(content, indent=1)}\n", encoding="utf-8")
    return manifest


def read_manifest(directory: Path) -> Manifest:
    """Return the manifest of a corpus.

    Raises:
        UsageError: There is none, or it is not one of this version.
    """
    path = manifest_path(directory)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except NotADirectoryError:
        said = "is a file; a corpus is a folder, as `loadgen topics` makes it"
        raise UsageError(f"{directory} {said}") from None
    except FileNotFoundError:
        said = (
            f"is not a topic corpus: it has no {MANIFEST_NAME}. Make one with: loadgen topics --out"
        )
        raise UsageError(f"{directory} {said} {directory}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as a corpus manifest: {error}.") from error
    version = content.get("schema_version") if isinstance(content, dict) else None
    if version != SCHEMA_VERSION:
        said = f"{path} has schema_version {version!r}; this loadgen reads {SCHEMA_VERSION}"
        raise UsageError(f"{said}. Make the corpus again with: loadgen topics")
    try:
        return _FORM.validate_python({"shape": {}, **content})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(f"{path} is not a corpus manifest: {place}: {first['msg']}.") from None


def expected_namespaces(
    corpus: Path | None, names: Sequence[str], option: str = "--namespace"
) -> tuple[Namespace, ...]:
    """Return the corpus's namespaces, those named, or those named of a corpus.

    Raises:
        UsageError: Nothing is named, or the corpus does not hold it.
    """
    known: dict[str, NamespaceEntry | None] = dict.fromkeys(names)
    if corpus is not None:
        known = dict(read_manifest(corpus).namespaces)
    elif not names:
        raise UsageError("name what to ask for: --corpus DIR, or --namespace tenant/namespace")
    for name in names:
        if corpus is not None and name not in known:
            raise UsageError(f"{option} {name} is not in {manifest_path(corpus)}")
    return tuple(expected_namespace(name, known[name]) for name in names or known)


def expected_namespace(name: str, entry: NamespaceEntry | None = None) -> Namespace:
    """Return a namespace as a run asks for it, with what a right answer holds if that is known.

    Raises:
        UsageError: The name is none.
    """
    known = {"topics": entry.asked.topics, "hash": entry.asked.hash} if entry else {}
    try:
        return Namespace.model_validate({"name": name, **known})
    except ValidationError as error:
        raise UsageError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None

"""The manifest of a corpus: how many topics each namespace has, and their topics hash.

It is written last, so that a directory with a manifest is a whole corpus.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from loadgen.errors import UsageError
from loadgen.engine.plan import Namespace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

MANIFEST_NAME = "manifest.json"
SCHEMA_VERSION = 1


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

    def to_json(self) -> dict[str, Any]:
        """Return what the file holds."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Manifest:
    """The contents of a corpus, and what it was made from.

    Attributes:
        seed: None of topics that nobody made up.
        shape: The proportions of synthetic topics, or where others come from.
    """

    seed: int | None
    topics: int
    namespaces: Mapping[str, NamespaceEntry]
    shape: Mapping[str, Any]

    @property
    def name_bytes(self) -> int:
        """Sum of the lengths of all names."""
        return sum(entry.name_bytes for entry in self.namespaces.values())

    @property
    def tenants(self) -> set[str]:
        """Names of the tenants that hold the namespaces."""
        return {name.partition("/")[0] for name in self.namespaces}

    def to_json(self) -> dict[str, Any]:
        """Return what the file holds."""
        return {
            "schema_version": SCHEMA_VERSION,
            "seed": self.seed,
            "topics": self.topics,
            "shape": dict(self.shape),
            "namespaces": {name: entry.to_json() for name, entry in self.namespaces.items()},
        }


def make_manifest(
    seed: int | None, shape: Mapping[str, Any], entries: Iterable[tuple[str, NamespaceEntry]]
) -> Manifest:
    """Return the manifest of a corpus from the entries of its namespaces, ordered by name."""
    namespaces = dict(sorted(entries, key=lambda entry: entry[0]))
    topics = sum(entry.topics for entry in namespaces.values())
    return Manifest(seed, topics, namespaces, shape)


def write_manifest(manifest: Manifest, directory: Path) -> None:
    """Write the manifest of a corpus into its directory."""
    text = json.dumps(manifest.to_json(), indent=1)
    (directory / MANIFEST_NAME).write_text(f"{text}\n", encoding="utf-8")


def read_manifest(directory: Path) -> Manifest:
    """Return the manifest of a corpus.

    Raises:
        UsageError: There is none, or it is not one of this version.
    """
    path = directory / MANIFEST_NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except NotADirectoryError:
        raise UsageError(
            f"{directory} is a file; a corpus is a folder, as `loadgen topics` makes it"
        ) from None
    except FileNotFoundError:
        raise UsageError(
            f"{directory} is not a topic corpus: it has no {MANIFEST_NAME}. "
            f"Make one with: loadgen topics --out {directory}"
        ) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as a corpus manifest: {error}.") from error
    return _parsed(path, content)


def _parsed(path: Path, content: Any) -> Manifest:  # noqa: ANN401
    """Return the manifest that parsed JSON describes."""
    version = content.get("schema_version") if isinstance(content, dict) else None
    if version != SCHEMA_VERSION:
        raise UsageError(
            f"{path} has schema_version {version!r}; this loadgen reads {SCHEMA_VERSION}. "
            "Make the corpus again with: loadgen topics"
        )
    try:
        namespaces = {name: _entry(entry) for name, entry in content["namespaces"].items()}
        shape = dict(content.get("shape", {}))
        seed = None if content["seed"] is None else int(content["seed"])
        return Manifest(seed, int(content["topics"]), namespaces, shape)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path} is not a corpus manifest: {error!r}.") from error


def _entry(content: Mapping[str, Any]) -> NamespaceEntry:
    persistent = content.get("persistent")
    return NamespaceEntry(
        *_figures(content), Listing(*_figures(persistent)) if persistent else None
    )


def _figures(content: Mapping[str, Any]) -> tuple[int, str, int]:
    return int(content["topics"]), str(content["hash"]), int(content["name_bytes"])


def expected_namespaces(
    corpus: Path | None, names: Sequence[str], option: str = "--namespace"
) -> tuple[Namespace, ...]:
    """Return the corpus's namespaces, those named, or those named of a corpus.

    Raises:
        UsageError: Nothing is named, or the corpus does not hold it.
    """
    if corpus is None:
        if not names:
            raise UsageError("name what to ask for: --corpus DIR, or --namespace tenant/namespace")
        return tuple(_expectation(name, None) for name in names)
    known = read_manifest(corpus).namespaces
    missing = [name for name in names if name not in known]
    if missing:
        raise UsageError(f"{option} {missing[0]} is not in {corpus / MANIFEST_NAME}")
    return tuple(_expectation(name, known[name]) for name in names or known)


def _expectation(name: str, entry: NamespaceEntry | None) -> Namespace:
    try:
        if entry is None:
            return Namespace(name=name)
        return Namespace(name=name, topics=entry.asked.topics, hash=entry.asked.hash)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UsageError(reason) from None

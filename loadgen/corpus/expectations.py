"""The namespaces that clients ask for, with what a corpus says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from loadgen.corpus.manifest import MANIFEST_NAME, read_manifest
from loadgen.errors import UsageError
from loadgen.scenario import NamespaceExpectation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadgen.corpus.manifest import NamespaceEntry


def expected_namespaces(
    corpus: Path | None, names: Sequence[str], option: str = "--namespace"
) -> tuple[NamespaceExpectation, ...]:
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


def _expectation(name: str, entry: NamespaceEntry | None) -> NamespaceExpectation:
    try:
        if entry is None:
            return NamespaceExpectation(name=name)
        return NamespaceExpectation(name=name, topics=entry.topics, hash=entry.hash)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UsageError(reason) from None

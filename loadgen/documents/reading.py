"""Reads a document: from its file or the shipped ones to a scenario with every value in place."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from loadgen.analysis.thresholds import parse_threshold
from loadgen.documents.document import Document, Head, scenario_of_load
from loadgen.documents.faults import Fault, document_error, fault_of, meant, shown
from loadgen.documents.kinds import MODELS, keys_below, load_fields
from loadgen.documents.merging import merged_documents
from loadgen.documents.server_keys import server_key_faults
from loadgen.documents.trace import with_traces
from loadgen.documents.tree import Branch, parse_tree, read_tree
from loadgen.documents.values import plain, texts
from loadgen.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SUFFIXES = (".yaml", ".yml")


@cache
def shipped() -> dict[str, Path]:
    """Return the files of the shipped scenarios by their names."""
    folder = Path(str(resources.files(__package__).joinpath("shipped")))
    return dict(sorted((file.stem, file) for file in folder.glob("*.yaml")))


def is_file_name(target: str) -> bool:
    """Tell a file of the user's from the name of a shipped scenario."""
    return "/" in target or target.endswith(_SUFFIXES)


def document_file(target: str, folder: Path | None = None) -> Path:
    """Return the file of a shipped scenario's name, or of a path.

    Raises:
        UsageError: No scenario of that name is shipped.
    """
    if is_file_name(target):
        return (folder or Path()) / target
    if target not in shipped():
        raise UsageError(
            f"there is no scenario {target[:80]!r}{meant(target, list(shipped()))}"
            " (a file of your own ends in .yaml)"
        )
    return shipped()[target]


def read_document(target: str) -> Document:
    """Read a shipped scenario by its name, or a file, with all that it extends.

    Raises:
        DocumentError: It has faults; says each with file, line and key.
        UsageError: It cannot be read at all.
    """
    file = document_file(target)
    tree = read_tree(file)
    return replace(resolved_document(tree, file), written=file.read_text(encoding="utf-8"))


def parse_document(text: str, file: Path = Path("scenario.yaml")) -> Document:
    """Make a document of a text; ``file`` is where its sentences say it stands.

    Raises:
        UsageError: As :func:`read_document`.
    """
    return replace(resolved_document(parse_tree(text, file), file), written=text)


def resolved_document(tree: Branch, file: Path) -> Document:
    """Make a document of a tree; its ``file`` names it unless it has a name.

    Raises:
        UsageError: As :func:`read_document`.
    """
    whole = with_traces(_extended(tree, (file,)))
    faults: list[Fault] = []
    values = plain(whole, on_fault=lambda path, said: faults.append(Fault(tuple(path), said)))
    values.setdefault("name", file.stem)
    values.pop("extends", None)
    _texts_of_servers(values)
    head = _head(values, faults)
    if head is not None:
        faults += [*server_key_faults(head.cluster), *_threshold_faults(head)]
    if head is None or faults:
        raise document_error(whole, faults, str(file))
    scenario, makes_topics = _scenario(head, whole, file)
    return Document(head, scenario, makes_topics)


def _extended(tree: Branch, chain: Sequence[Path]) -> Branch:
    """Lay a tree over the document that it extends, and that over its own."""
    target = tree.get("extends")
    if target is None:
        return tree
    place = tree.places["extends"]
    if not isinstance(target, str):
        raise UsageError(f"{place}: extends {shown(target)}: must be a name or a file")
    try:
        file = document_file(target, place.file.parent)
        base = read_tree(file)
    except UsageError as error:
        raise UsageError(f"{place}: extends {error}") from None
    if any(_same(file, each) for each in chain):
        names = " extends ".join(each.name for each in (*chain, file))
        raise UsageError(f"{place}: this goes in a circle: {names}")
    return merged_documents(_extended(base, (*chain, file)), tree)


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _texts_of_servers(values: dict[str, Any]) -> None:
    cluster = values.get("cluster")
    for role in ("broker", "proxy"):
        if isinstance(cluster, dict) and isinstance(cluster.get(role), Branch):
            cluster[role] = texts(cluster[role])


def _head(values: dict[str, Any], faults: list[Fault]) -> Head | None:
    """Return the general part; None if it has faults, which are added to those known."""
    kind = values.get("kind")
    if kind is not None and kind not in MODELS:
        faults.append(Fault(("kind",), f"{shown(kind)} is none{meant(str(kind), list(MODELS))}"))
    try:
        return Head.model_validate(values)
    except ValidationError as error:
        faults += _faults(error, Head, ())
        return None


def _threshold_faults(head: Head) -> Iterator[Fault]:
    for number, threshold in enumerate(head.thresholds):
        try:
            parse_threshold(threshold)
        except UsageError as error:
            yield Fault(("thresholds", number), f"is not possible: {error}")


def _scenario(head: Head, whole: Branch, file: Path) -> tuple[Any, bool]:
    model, known = MODELS[head.kind], load_fields(head.kind)
    faults = [
        Fault(("load", key), f"does not exist in kind {head.kind}{meant(key, known)}")
        for key in head.load
        if key not in known
    ]
    if "groups" in head.load and "groups" in known:
        # Looked at by itself first: within the whole, pydantic does not say which group it is.
        groups: Any = model.model_fields["groups"].annotation
        try:
            TypeAdapter(groups).validate_python(head.load["groups"])
        except ValidationError as error:
            faults += _faults(error, model, ("load", "groups"))
    if faults:
        raise document_error(whole, faults, str(file))
    try:
        return scenario_of_load(head.kind, head.load, head.cluster)
    except ValidationError as error:
        raise document_error(whole, _faults(error, model, ("load",)), str(file)) from None


def _faults(error: ValidationError, model: Any, above: tuple[str, ...]) -> list[Fault]:  # noqa: ANN401
    """Return the faults of a part of a document, with their paths in the whole of it."""
    found = []
    for each in error.errors():
        path = (*above, *each["loc"])
        inside = path[1:] if above else path
        keys = {path[:-1]: keys_below(model, inside[:-1])}
        found.append(fault_of({**each, "loc": path}, keys))
    return found

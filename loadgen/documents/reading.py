"""Reads a document: from its file or the shipped ones to a value with everything in place."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from loadgen.documents.faults import Fault, document_error, fault_of, meant, shown
from loadgen.documents.merging import merged_documents, with_setting
from loadgen.documents.model import Document, key_text
from loadgen.documents.server_keys import server_key_faults
from loadgen.documents.trace import with_traces
from loadgen.documents.tree import Branch, Row, parse_tree, read_text
from loadgen.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    CheckExpectation = Callable[[str, Sequence[str]], object]

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


def read_document(
    target: str,
    settings: Sequence[str] = (),
    check_expectation: CheckExpectation = lambda text, groups: None,
) -> Document:
    """Read a shipped scenario by its name, or a file, with all that it extends.

    Args:
        target: The name or the file.
        settings: Laid over it in turn, ``clients.consumers.count=5000`` each.
        check_expectation: Takes an expectation and the names of the groups; raises UsageError if
            it cannot be understood.

    Raises:
        DocumentError: It has faults; says each with file, line and key.
        UsageError: It cannot be read at all.
    """
    file = document_file(target)
    return parse_document(read_text(file), file, settings, check_expectation)


def parse_document(
    text: str,
    file: Path = Path("scenario.yaml"),
    settings: Sequence[str] = (),
    check_expectation: CheckExpectation = lambda text, groups: None,
) -> Document:
    """Make a document of a text; ``file`` is where its sentences say it stands.

    Raises:
        UsageError: As :func:`read_document`.
    """
    whole = _extended(parse_tree(text, file), (file,))
    whole.pop("extends", None)
    whole.setdefault("name", file.stem)
    for setting in settings:
        whole = with_setting(whole, setting)
    whole = with_traces(whole)
    faults = [*_server_faults(whole), *_expectation_faults(whole, check_expectation)]
    try:
        document = Document.model_validate(whole).written_as(text)
    except ValidationError as error:
        found = error.errors(include_url=False)
        # A list is told to be too short as well where all of its values have faults.
        faults = [
            fault_of(each)
            for each in found
            if each["type"] != "too_short" or len(each["input"]) < each["ctx"]["min_length"]
        ] + faults
    else:
        if not faults:
            return document
    raise document_error(whole, faults, str(file))


def _extended(tree: Branch, chain: Sequence[Path]) -> Branch:
    """Lay a tree over the document that it extends, and that over its own."""
    target = tree.get("extends")
    if target is None:
        return tree
    place = tree.places["extends"]
    if not isinstance(target, str):
        raise UsageError(f"{place}: extends {shown(target)}: must be a name or a file")
    try:
        file = document_file(target, place.folder)
        base = parse_tree(read_text(file), file)
    except UsageError as error:
        raise UsageError(f"{place}: extends {error}") from None
    if file.resolve() in [each.resolve() for each in chain]:
        names = " extends ".join(each.name for each in (*chain, file))
        raise UsageError(f"{place}: this goes in a circle: {names}")
    return merged_documents(_extended(base, (*chain, file)), tree)


def _server_faults(whole: Branch) -> Iterator[Fault]:
    found: list[tuple[str, Any, Any]] = []
    found += [(role, whole.get("servers"), ("servers", role)) for role in ("broker", "proxy")]
    for number, shock in enumerate(_row(whole, "shocks")):
        found.append(("broker", shock, ("shocks", number, "set")))
    for role, part, path in found:
        keys = part.get(path[-1]) if isinstance(part, Branch) else None
        if isinstance(keys, Branch):
            told = server_key_faults(role, {key: key_text(value) for key, value in keys.items()})
            for key, said in told:
                yield Fault((*path, key), said)


def _row(whole: Branch, key: str) -> Row:
    row = whole.get(key)
    return row if isinstance(row, Row) else Row((), ())


def _expectation_faults(whole: Branch, check: CheckExpectation) -> Iterator[Fault]:
    clients = [each for each in _row(whole, "clients") if isinstance(each, Branch)]
    groups = [str(each.get("name")) for each in clients]
    for number, text in enumerate(_row(whole, "expect")):
        try:
            if isinstance(text, str):
                check(text, groups)
        except UsageError as error:
            yield Fault(("expect", number), f"is not possible: {error}")

"""Reads a document: from its file or the shipped ones to a value with everything in place."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from loadgen.documents.faults import Fault, document_error, fault_of, located, meant, shown
from loadgen.documents.merging import merged, with_setting
from loadgen.documents.model import Document
from loadgen.documents.server_keys import server_key_faults
from loadgen.documents.service_times import KEY as SERVICE_TIMES
from loadgen.documents.service_times import read_service_times
from loadgen.documents.trace import read_trace
from loadgen.documents.tree import parse_tree
from loadgen.errors import UsageError, read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadgen.documents.tree import Written

    CheckExpectation = Callable[[str, Sequence[str]], object]

_LARGEST_BYTES = 4 << 20
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
    return parse_document(
        read_text("the scenario", file, _LARGEST_BYTES), file, settings, check_expectation
    )


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
    tree = _extended(parse_tree(text, file), (file,))
    for setting in settings:
        tree = with_setting(tree, setting)
    whole = {"name": file.stem, **tree.plain()}
    _read_traces(whole, tree)
    _read_service_times(whole, tree)
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
    raise document_error(tree, faults)


def _extended(tree: Written, chain: Sequence[Path]) -> Written:
    """Lay a tree over the document that it extends, and that over its own."""
    target = tree.value.pop("extends", None)
    name = target.plain() if target else None
    if target is None or name is None:
        return tree
    if not isinstance(name, str):
        raise UsageError(f"{target.place}: extends {shown(name)}: must be a name or a file")
    try:
        file = document_file(name, target.place.folder)
        base = parse_tree(read_text("the scenario", file, _LARGEST_BYTES), file)
    except UsageError as error:
        raise UsageError(f"{target.place}: extends {error}") from None
    if file.resolve() in [each.resolve() for each in chain]:
        names = " extends ".join(each.name for each in (*chain, file))
        raise UsageError(f"{target.place}: this goes in a circle: {names}")
    base.value.pop("name", None)  # It is one document's own.
    return merged(_extended(base, (*chain, file)), tree)


def _read_traces(whole: dict[str, Any], tree: Written) -> None:
    """Put the moments of logs where arrivals name one, relative to the document that names it."""
    for number, group in _mappings(whole, "clients"):
        arrive: Any = group.get("arrive")
        is_trace = isinstance(arrive, dict) and arrive.get("kind") == "trace"
        if is_trace and "file" in arrive and "at" not in arrive:
            place, _ = located(tree, ("clients", number, "arrive", "file"))
            arrive["at"] = read_trace(place.folder / str(arrive.pop("file")))


def _read_service_times(whole: dict[str, Any], tree: Written) -> None:
    """Put times where servers name a file of them, relative to the document that names it."""
    servers = whole.get("servers")
    named = servers.get(SERVICE_TIMES) if isinstance(servers, dict) else None
    if isinstance(servers, dict) and isinstance(named, str) and is_file_name(named):
        place, _ = located(tree, ("servers", SERVICE_TIMES))
        servers[SERVICE_TIMES] = read_service_times(place.folder / named)


def _mappings(whole: dict[str, Any], key: str) -> list[tuple[int, dict[str, Any]]]:
    """Return the mappings of a list, each with its number there."""
    rows = whole[key] if isinstance(whole.get(key), list) else []
    return [(number, each) for number, each in enumerate(rows) if isinstance(each, dict)]


def _server_faults(whole: dict[str, Any]) -> Iterator[Fault]:
    found: list[tuple[str, Any, tuple[str | int, ...]]] = [
        (role, whole.get("servers"), ("servers", role)) for role in ("broker", "proxy")
    ]
    shocks = _mappings(whole, "shocks")
    found += [("broker", shock, ("shocks", number, "set")) for number, shock in shocks]
    for role, part, path in found:
        keys = part.get(path[-1]) if isinstance(part, dict) else None
        for key, said in server_key_faults(role, keys if isinstance(keys, dict) else {}):
            yield Fault((*path, key), said)


def _expectation_faults(whole: dict[str, Any], check: CheckExpectation) -> Iterator[Fault]:
    groups = [str(each.get("name")) for _, each in _mappings(whole, "clients")]
    expected = whole.get("expect")
    for number, text in enumerate(expected if isinstance(expected, list) else ()):
        try:
            if isinstance(text, str):
                check(text, groups)
        except UsageError as error:
            yield Fault(("expect", number), f"is not possible: {error}")

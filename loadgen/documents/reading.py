"""Reads scenario documents, which are shipped with loadgen or are the user's own files.

Reading resolves a document's extended documents, ``--set`` options, and files named in values.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from loadgen.documents.faults import Fault, document_error, fault_of
from loadgen.documents.model import Document
from loadgen.documents.server_keys import server_key_faults
from loadgen.documents.service_times import KEY as SERVICE_TIMES
from loadgen.documents.tree import Written, merged, parse_tree, parse_values, with_setting
from loadgen.errors import UsageError, meant, read_text, shown
from loadgen.plan.fields import MOST_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    CheckExpectation = Callable[[str, Sequence[str]], object]

_LARGEST_BYTES, _LARGEST_TIMES_BYTES = 4 << 20, 1 << 16
_SUFFIXES = (".yaml", ".yml")
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?(?=\s|[]|,;]|$)"
)
_SECONDS = re.compile(r"\d{1,12}(?:\.\d{1,9})?(?=\s|[,;]|$)")


@cache
def shipped() -> dict[str, Path]:
    """Return the files of the shipped scenarios, by scenario name."""
    folder = Path(str(resources.files(__package__).joinpath("shipped")))
    return dict(sorted((file.stem, file) for file in folder.glob("*.yaml")))


def is_file_name(target: str) -> bool:
    """Return True if ``target`` names a file, and False if it names a shipped scenario."""
    return "/" in target or target.endswith(_SUFFIXES)


def document_file(target: str, folder: Path | None = None) -> Path:
    """Return the path of a shipped scenario, given its name, or the path of a user's file.

    Raises:
        UsageError: No scenario of the given name is shipped.
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
    """Read a scenario by a shipped name or a path, with all extended documents.

    Args:
        target: The name or the file.
        settings: ``--set`` options such as ``clients.consumers.count=5000``, applied in this order.
        check_expectation: Called with an expectation and the names of the groups; raises UsageError
            for an invalid expectation.

    Raises:
        DocumentError: The document has errors; each sentence has the file, line and key.
        UsageError: The document cannot be read.
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
    """Parse the text of a scenario document; ``file`` is its file name in error sentences.

    Raises:
        UsageError: The document is invalid, or an extended document cannot be read.
    """
    tree = _extended(parse_tree(text, file), (file,))
    for setting in settings:
        tree = with_setting(tree, setting)
    _read_named_files(tree)
    faults = [*_server_faults(tree), *_expectation_faults(tree, check_expectation)]
    try:
        document = Document.model_validate({"name": file.stem, **tree.plain()}).written_as(text)
    except ValidationError as error:
        found = error.errors(include_url=False)
        # pydantic reports a list as too short as well if all values have faults.
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
    """Merge a document into the extended document, which may extend another document."""
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
        raise UsageError(f"{target.place}: circular extends: {names}")
    base.value.pop("name", None)  # A name belongs to a single document.
    return merged(_extended(base, (*chain, file)), tree)


def _server_faults(tree: Written) -> Iterator[Fault]:
    parts: list[tuple[str, tuple[str | int, ...]]] = [
        ("broker", ("servers", "broker")),
        ("proxy", ("servers", "proxy")),
        *(("broker", ("shocks", number, "set")) for number in range(len(tree.rows("shocks")))),
    ]
    for role, path in parts:
        keys = tree.at(*path)
        for key, said in server_key_faults(role, keys.plain() if keys and keys.is_mapping else {}):
            yield Fault((*path, key), said)


def _expectation_faults(tree: Written, check: CheckExpectation) -> Iterator[Fault]:
    names = [group.at("name") for group in tree.rows("clients")]
    groups = [str(name.value) for name in names if name is not None]
    for number, expected in enumerate(tree.rows("expect")):
        try:
            if isinstance(expected.value, str):
                check(expected.value, groups)
        except UsageError as error:
            yield Fault(("expect", number), f"is not possible: {error}")


# -- files named in a document, relative to the document ------------------------------------------


def _read_named_files(tree: Written) -> None:
    """Replace file names of traces and service times in a document by the files' contents."""
    for group in tree.rows("clients"):
        arrive, kind = group.at("arrive"), group.at("arrive", "kind")
        file = arrive.at("file") if arrive and kind and kind.value == "trace" else None
        if arrive and file and not arrive.at("at"):
            moments = read_trace(file.place.folder / str(arrive.value.pop("file").value))
            rows = [Written(moment, file.place) for moment in moments]
            arrive.value["at"] = Written(rows, file.place)
    servers, named = tree.at("servers"), tree.at("servers", SERVICE_TIMES)
    if servers and named and isinstance(named.value, str) and is_file_name(named.value):
        servers.value[SERVICE_TIMES] = read_service_times(named.place.folder / named.value)


def read_service_times(file: Path) -> Written:
    """Read the service times in a file written by ``loadgen measure``.

    Raises:
        UsageError: The file cannot be read, or has no service times.
    """
    text = read_text("the service times", file, _LARGEST_TIMES_BYTES)
    times = parse_values(text, file).at(SERVICE_TIMES)
    if times is None or not times.is_mapping:
        raise UsageError(
            f"{file} has no {SERVICE_TIMES}: name a file that loadgen measure has written"
        )
    return times


def read_trace(file: Path) -> list[float]:
    """Read the times in a log file, as ascending numbers of seconds after the earliest time.

    Empty lines and lines beginning with ``#`` are skipped.

    Raises:
        UsageError: The file cannot be read, contains no time, or has a line not beginning with a
            time.
    """
    lines = read_text("the trace", file, undecoded="replace").splitlines()
    moments = sorted(
        (_moment(line.strip(), f"{file}, line {number}"), number)
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.lstrip().startswith("#")
    )
    if not moments:
        raise UsageError(f"the trace {file} has no moment")
    (first, line_of_first), (last, line_of_last) = moments[0], moments[-1]
    if last - first > MOST_SECONDS:
        raise UsageError(
            f"{file}, line {line_of_last}: this moment is {last - first:,.0f} s after the first, "
            f"of line {line_of_first}: a trace lasts at most {MOST_SECONDS:,} s"
        )
    return [round(moment - first, 6) for moment, _ in moments]


def _moment(line: str, where: str) -> float:
    text = line.lstrip("[")
    if found := _SECONDS.match(text):
        return float(found[0])
    with suppress(ValueError):  # the thirteenth month
        if found := _ISO.match(text):
            time = datetime.fromisoformat(found[0].replace(",", "."))
            return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    raise UsageError(
        f"{where}: {line[:40]!r} begins with no moment: seconds, or a time as 2026-11-23T08:00:00Z"
    )

"""Variations of a scenario document: other values of keys that options name by short paths.

``broker.KEY``, ``proxy.KEY`` and ``topics.FIELD`` are the cluster's, and so are ``profile`` and
``service_times``; every other path is of the load. A scenario with groups knows three more:
``clients`` is the sum of all groups, ``groups.NAME.FIELD`` is one group's, and what is a group's
alone, such as ``arrivals.per_second`` or ``family``, is set in all groups.
"""

from __future__ import annotations

import re
from itertools import product
from math import isfinite, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from loadgen.documents.groups import shares
from loadgen.documents.reading import parse_document
from loadgen.documents.tree import Branch, Row, parse_values
from loadgen.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadgen.documents.document import Document

Value = bool | int | float | str
_OF_CLUSTER = ("broker", "proxy", "topics")
MOST_POINTS = 10_000
_PLACE = re.compile(r"^scenario\.yaml, line \d+: ")
"""In the document with the other values, which nobody has as a file."""


class Varied(NamedTuple):
    """A key by its path, and the values that it takes."""

    path: str
    values: tuple[Value, ...]


class Range(NamedTuple):
    """A key by its path, and the two ends between which its limit is looked for."""

    path: str
    low: float
    high: float

    @property
    def whole(self) -> bool:
        """True if only whole numbers are tried."""
        return self.low == int(self.low) and self.high == int(self.high)


def parse_varied(text: str) -> Varied:
    """Return the key and values of ``broker.KEY=10,20,50``.

    Raises:
        UsageError: The text is not of this form.
    """
    path, _, values = text.partition("=")
    found = tuple(_value(each) for each in values.split(",") if each.strip())
    if not path.strip() or not found:
        raise UsageError(
            f"--vary {text[:80]!r} is not of the form PATH=VALUE,VALUE: for example "
            "broker.maxTopicListInFlightHeapMemSizeMB=10,20,50"
        )
    return Varied(path.strip(), found)


def parse_range(text: str) -> Range:
    """Return the key and the ends of ``arrivals.per_second=10..1000``.

    Raises:
        UsageError: The text is not of this form.
    """
    path, _, ends = text.partition("=")
    first, dots, last = ends.partition("..")
    low, high = (_value(each) for each in (first, last))
    if not path.strip() or not dots or not _number(low) or not _number(high) or not low < high:  # type: ignore[operator]
        raise UsageError(
            f"--vary {text[:80]!r} is not of the form PATH=LOW..HIGH: for example "
            "arrivals.per_second=10..1000"
        )
    return Range(path.strip(), float(low), float(high))


def _number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _value(text: str) -> Value:
    """Return a value as a document would have it: ``010`` and ``no`` are texts."""
    try:
        found = parse_values(text, Path("--vary"))
    except UsageError:
        return text.strip()
    return found if isinstance(found, Value) else text.strip()


def parse_grid(text: str, file: Path) -> list[Varied]:
    """Return the keys and values of a YAML file ``KEY: [10, 20, 50]``.

    Raises:
        UsageError: The text is not of this form.
    """
    found = parse_values(text, file)
    if not isinstance(found, Branch) or not all(map(_is_row_of_values, found.values())):
        raise UsageError(f"--grid {file} is not a list of values for each path: KEY: [10, 20, 50]")
    return [Varied(path.strip(), tuple(values)) for path, values in found.items()]


def _is_row_of_values(value: object) -> bool:
    return isinstance(value, Row) and bool(value) and all(isinstance(each, Value) for each in value)


def grid(varied: Sequence[Varied], seeds: Sequence[int]) -> Iterator[dict[str, Value]]:
    """Yield every combination of the values, each with every seed.

    Raises:
        UsageError: A path is there twice, or there are more than ``MOST_POINTS``.
    """
    paths = [each.path for each in varied]
    if "seed" in paths:
        raise UsageError("--vary seed: use --seeds N, which runs each point with seeds 1 to N")
    for path, values in varied:
        if paths.count(path) > 1:
            raise UsageError(f"--vary {path} is there twice: give all its values at once")
        if len(set(values)) < len(values):
            raise UsageError(f"--vary {path} has a value twice: use --seeds N for more runs of it")
    points = prod(len(each.values) for each in varied) * len(seeds)
    if points > MOST_POINTS:
        raise UsageError(f"the grid has {points:,} points; at most {MOST_POINTS:,} are run")
    for values in product(*(each.values for each in varied)):
        for seed in seeds:
            yield {**dict(zip(paths, values, strict=True)), "seed": seed}


def with_values(document: Document, values: Mapping[str, Value]) -> Document:
    """Return a document with other values.

    Raises:
        UsageError: There is no such key, or it does not take the value.
    """
    whole = document.resolved()
    for path, value in values.items():
        _set(whole, path, value)
    try:
        return parse_document(yaml.safe_dump(whole, sort_keys=False))
    except UsageError as error:
        said = ", ".join(f"{path}={value}" for path, value in values.items())
        fault = _PLACE.sub("", str(error).splitlines()[-1].strip())
        raise UsageError(f"--vary {said}: {fault}") from None


def _set(whole: dict[str, Any], path: str, value: Value) -> None:
    first, _, rest = path.partition(".")
    load = whole["load"]
    if path in ("profile", "service_times"):
        whole["cluster"][path] = value
    elif first in _OF_CLUSTER and rest:
        _set_of_cluster(whole["cluster"], first, rest, value)
    elif "groups" in load and (path == "clients" or first == "groups" or first not in load):
        _set_of_groups(load["groups"], path, value)
    elif first in load:
        _set_below(load, path, value, path)
    else:
        raise _unknown(path, f"the load of the scenario has {', '.join(load)}")


def _set_of_cluster(cluster: dict[str, Any], part: str, key: str, value: Value) -> None:
    if cluster[part] is None:
        raise _unknown(f"{part}.{key}", f"the scenario's cluster has no {part}")
    if part == "topics":
        _set_below(cluster["topics"], key, value, f"topics.{key}")
    else:
        cluster[part][key] = str(value).lower() if isinstance(value, bool) else str(value)


def _set_of_groups(groups: list[dict[str, Any]], path: str, value: Value) -> None:
    if path == "clients":
        if isinstance(value, bool) or not isinstance(value, int):
            raise UsageError(f"--vary clients={value}: clients are a whole number")
        sizes = shares(value, [group["clients"] for group in groups])
        for group, size in zip(groups, sizes, strict=True):
            group["clients"] = size
        return
    first, _, rest = path.partition(".")
    if first == "groups":
        _set_of_group(groups, rest, value)
        return
    found = [group for group in groups if _has(group, path)]
    for group in found:
        _set_below(group, path, value, path)
    if not found:
        raise _unknown(path, "no group of the scenario has it")


def _set_of_group(groups: list[dict[str, Any]], rest: str, value: Value) -> None:
    name, _, field = rest.partition(".")
    for group in groups:
        if group["name"] == name and field:
            _set_below(group, field, value, f"groups.{rest}")
            return
    names = ", ".join(group["name"] for group in groups)
    raise _unknown(f"groups.{rest}", f"write groups.NAME.FIELD with one of the groups {names}")


def _set_below(place: dict[str, Any], path: str, value: Value, whole: str) -> None:
    *above, last = path.split(".")
    for name in above:
        place = place.get(name)  # type: ignore[assignment]
        if not isinstance(place, dict):
            raise _unknown(whole, f"there is nothing below {name}")
    if last not in place:
        raise _unknown(whole, f"there are {', '.join(place)}")
    place[last] = value


def _has(place: Any, path: str) -> bool:  # noqa: ANN401
    for name in path.split("."):
        if not isinstance(place, dict) or name not in place:
            return False
        place = place[name]
    return True


def _unknown(path: str, reason: str) -> UsageError:
    return UsageError(f"--vary {path[:80]}: there is no such key; {reason}")

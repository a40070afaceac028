"""Calls of a described REST API, allowed by its description and not.

Most allowed calls name existing objects: the description's examples.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from requests import Request
from schemathesis import Case, GenerationMode
from schemathesis.schemas import APIOperation

_NOWHERE = "http://server"
_SENT = ("method", "url", "headers", "params", "data", "json", "files", "cookies")


class Kind(Enum):
    """The relation of a call to the description."""

    KNOWN = "allowed, about what exists"
    OPEN = "allowed, about anything"
    REFUSED = "not allowed"


@dataclass(frozen=True)
class Call:
    """A call as sent.

    Attributes:
        label: Its operation: a method and a path.
        kind: Its relation to the description.
        answers: The described statuses.
    """

    label: str
    kind: Kind
    answers: frozenset[str]
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None

    def __str__(self) -> str:
        return f"{self.method} {self.path[:300]} {(self.body or b'')[:300]!r}"


class DescribedCalls:
    """The operations of a description, and calls of each.

    Args:
        document: The description.
        known: More values of existing parameters, by name; the examples are always included.
    """

    def __init__(self, document: Mapping[str, Any], known: Mapping[str, Sequence[object]]) -> None:
        self._open = _operations(dict(document))
        self._known = _operations(_about_what_exists(document, known))
        self._answers = {label: frozenset(_answers(document, label)) for label in self._open}
        self._without: set[tuple[str, Kind]] = set()

    @property
    def labels(self) -> list[str]:
        """A method and a path for each operation."""
        return sorted(self._open)

    def calls(self, label: str, number: int, counts: Mapping[Kind, int]) -> Iterator[Call]:
        """Yield calls of an operation, in the wanted number of each kind.

        Calls repeat if too few differ; a kind without any possible call is left out.

        Args:
            label: A method and a path.
            number: Seed of the calls.
            counts: Number of each kind.
        """
        for kind, count in counts.items():
            if (label, kind) in self._without:
                continue
            operation = (self._open if kind is Kind.OPEN else self._known)[label]
            found = _made(operation, number, count, _MODES[kind])
            if not found:
                self._without.add((label, kind))
            for index in range(count if found else 0):
                yield self._sent(label, kind, found[index % len(found)])

    def _sent(self, label: str, kind: Kind, case: Case) -> Call:
        given = case.as_transport_kwargs(_NOWHERE)
        sent = Request(**{name: given[name] for name in _SENT if name in given}).prepare()
        body = sent.body.encode() if isinstance(sent.body, str) else sent.body
        headers = {name: str(text) for name, text in sent.headers.items()}
        return Call(
            label, kind, self._answers[label], str(sent.method), sent.path_url, headers, body
        )


_MODES = {
    Kind.KNOWN: GenerationMode.POSITIVE,
    Kind.OPEN: GenerationMode.POSITIVE,
    Kind.REFUSED: GenerationMode.NEGATIVE,
}


def _operations(document: dict[str, Any]) -> dict[str, APIOperation[Any]]:
    schema = schemathesis.openapi.from_dict(document)
    found = [one.ok() for one in schema.get_all_operations()]
    return {one.label: one for one in found}


def _answers(document: Mapping[str, Any], label: str) -> Iterator[str]:
    method, path = label.split(" ", 1)
    return iter(document["paths"][path][method.lower()]["responses"])


def _about_what_exists(
    document: Mapping[str, Any], known: Mapping[str, Sequence[object]]
) -> dict[str, Any]:
    """Return a description whose path parameters have only existing values."""
    found: dict[str, Any] = deepcopy(dict(document))
    for methods in found["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                values = [*known.get(parameter["name"], ())]
                if "example" in parameter:
                    values.insert(0, parameter["example"])
                if parameter["in"] == "path" and values:
                    parameter["schema"] = {"enum": values}
    return found


def _made(
    operation: APIOperation[Any], number: int, count: int, mode: GenerationMode
) -> list[Case]:
    found: list[Case] = []

    @seed(number)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(generation_mode=mode))
    def keep(case: Case) -> None:
        found.append(case)

    with suppress(Unsatisfiable):
        keep()
    return found

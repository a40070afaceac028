"""Documents are read strictly, and every problem is told with its place."""

from dataclasses import dataclass, field
from enum import Enum

import pytest

from server.documents import (
    Choice,
    DocumentError,
    Member,
    Nested,
    Number,
    Part,
    Several,
    Text,
    kind,
)


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


@dataclass(frozen=True)
class Fry(Part):
    action = "fry"

    for_seconds: int = field(metadata=kind(Number(1, 60)))


@dataclass(frozen=True)
class Serve(Part):
    action = "serve"

    heat: float = field(default=0.5, metadata=kind(Number(0.0, 1.0)))


@dataclass(frozen=True, kw_only=True)
class Dish(Part):
    name: str = field(metadata=kind(Text(5)))
    sides: tuple[str, ...] = field(default=(), metadata=kind(Several(Choice(("rice",)), 2)))
    size: Size = field(default=Size.SMALL, metadata=kind(Member(Size)))
    note: str | None = field(default=None, metadata=kind(Text(5)))
    do: Fry | Serve = field(metadata=kind(Nested((Fry, Serve))))


WHOLE = {
    "name": "soup",
    "sides": ["rice"],
    "size": "large",
    "do": {"action": "fry", "forSeconds": 2},
}


def test_a_document_read_and_written_again_is_unchanged() -> None:
    made = Dish.of(WHOLE)
    assert made == Dish(name="soup", sides=("rice",), size=Size.LARGE, do=Fry(2))
    assert made.as_json() == WHOLE
    assert Dish.of({"name": "a", "do": {"action": "serve"}, "note": None}).as_json() == {
        "name": "a",
        "do": {"action": "serve"},
    }


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": ""}, "name: a text of 1 to 5 characters is expected, not ''"),
        ({"name": 3}, "name: a text of 1 to 5 characters is expected, not 3"),
        ({"name": "\ud800"}, "name: Unicode text is expected, not '\\ud800'"),
        ({"size": {"a": {}}}, "size: an object is none of small, large"),
        ({"sides": ["rice", "peas"]}, "sides.1: 'peas' is none of rice"),
        ({"sides": ["rice"] * 3}, "sides: a list of at most 2 is expected"),
        ({"size": "huge"}, "size: 'huge' is none of small, large"),
        ({"do": {"action": "fry"}}, "do.forSeconds: is missing"),
        (
            {"do": {"action": "fry", "forSeconds": True}},
            "do.forSeconds: a whole number from 1 to 60 is expected, not True",
        ),
        (
            {"do": {"action": "serve", "heat": 2}},
            "do.heat: a number from 0.0 to 1.0 is expected, not 2",
        ),
        ({"do": {"action": "eat"}}, "do.action: 'eat' is none of fry, serve"),
        ({"do": 1}, "do.action: '' is none of fry, serve"),
        ({"sauce": 1}, "sauce: no such key; there are name, sides, size, note, do"),
    ],
)
def test_a_problem_is_reported_with_its_place(change: dict[str, object], problem: str) -> None:
    with pytest.raises(DocumentError) as refused:
        Dish.of({**WHOLE, **change})
    assert refused.value.problems == (problem,)


def test_a_whole_number_may_be_written_with_a_decimal_point() -> None:
    assert Dish.of({**WHOLE, "do": {"action": "fry", "forSeconds": 2.0}}).do.for_seconds == 2


def test_all_problems_are_reported() -> None:
    with pytest.raises(DocumentError) as refused:
        Dish.of({"size": 1, "x": 2})
    assert len(refused.value.problems) == 4


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000, b"\xff", b"[]"])
def test_a_text_that_is_no_json_object_is_refused(text: bytes) -> None:
    with pytest.raises(DocumentError):
        Dish.of_json(text)


def test_the_schema_describes_the_parts() -> None:
    schema = Dish.schema()
    assert schema["required"] == ["name", "do"]
    sizes = {"type": "string", "enum": ["large", "small"], "default": "small"}
    assert schema["properties"]["size"] == sizes
    assert schema["$defs"]["Fry"]["properties"]["forSeconds"]["maximum"] == 60
    assert schema["$defs"]["Fry"]["required"] == ["action", "forSeconds"]

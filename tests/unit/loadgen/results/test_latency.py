"""Figures of a document are numbers, or null where that is said."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from loadgen.results.latency import read_figures


@dataclass(frozen=True)
class Figures:
    answered: int
    topics: int | None = None


def test_a_figure_that_may_be_unknown_may_be_null() -> None:
    assert read_figures(Figures, {"answered": 3, "topics": None}) == Figures(3, None)


@pytest.mark.parametrize("value", [None, "3", [3]])
def test_a_figure_that_must_be_known_is_a_number(value: object) -> None:
    with pytest.raises(TypeError, match="answered"):
        read_figures(Figures, {"answered": value})

"""Conversion of command-line words, and the sentences about invalid words."""

import pytest
import typer

from client.admin.commands.values import one_of


@pytest.mark.parametrize("text", ["FULL", "full", "Full"])
def test_a_name_is_found_in_capitals_or_not(text: str) -> None:
    parse = one_of("FULL", "BACKWARD")
    assert parse(text) == "FULL"


def test_a_name_that_is_none_is_refused_with_those_there_are() -> None:
    parse = one_of("FULL", "BACKWARD")
    with pytest.raises(typer.BadParameter, match="'FUL' should be one of: FULL, BACKWARD"):
        parse("FUL")

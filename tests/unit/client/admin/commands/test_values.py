"""Conversion of command-line words, and the sentences about invalid words."""

import pytest
import typer

from client.admin.commands.values import one_of


@pytest.mark.parametrize("text", ["FULL", "full", "Full"])
def test_a_choice_is_accepted_in_upper_lower_or_mixed_case(text: str) -> None:
    parse = one_of("FULL", "BACKWARD")
    assert parse(text) == "FULL"


def test_an_unknown_choice_is_refused_with_the_list_of_choices() -> None:
    parse = one_of("FULL", "BACKWARD")
    with pytest.raises(typer.BadParameter, match="'FUL' should be one of: FULL, BACKWARD"):
        parse("FUL")

"""Every sentence of the page is said somewhere, and what is said is a sentence of the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loadgen.studies.advise import sentences as module
from loadgen.studies.advise.sentences import said, said_of, sentences

CODE = "".join(
    file.read_text(encoding="utf-8") for file in Path(module.__file__).parent.glob("*.py")
)


@pytest.mark.parametrize("name", [name for name, text in sentences().items() if text is str(text)])
def test_no_sentence_is_left_over(name: str) -> None:
    # Given: what stands in braces is a server, a profile or a subject
    begun = name.rpartition("-")[0]
    # Then
    assert f'"{name}"' in CODE or f'"{begun}-{{' in CODE


def test_what_is_said_is_a_sentence_of_the_page() -> None:
    assert set(re.findall(r'said\(\s*"([\w-]+)"', CODE)) <= sentences().keys()


def test_figures_have_their_units() -> None:
    # When
    told = said_of("timeout", question=Anything(), reading="", waits=1.5, value=2500)
    # Then
    assert told["costs"] == "a refusal is told up to 2.50 s late"
    assert told["binds"].endswith("all waits of a request together are 1.50 s")
    assert said("today", told="goal met") == "Today's limits, simulated: goal met."


class Anything:
    """A question of somebody who waits for 30 s."""

    timeout = 30

    @property
    def usual(self) -> Anything:
        """Its largest group."""
        return self

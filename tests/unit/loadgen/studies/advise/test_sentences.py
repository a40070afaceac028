"""Every sentence of the page is produced somewhere, and every produced sentence is on the page."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from loadgen.commands import advise as command
from loadgen.studies.advise import sentences as module
from loadgen.studies.advise.sentences import said, sentences

FILES = [*Path(module.__file__).parent.glob("*.py"), Path(command.__file__)]
CODE = "".join(file.read_text(encoding="utf-8") for file in FILES)


@pytest.mark.parametrize("name", sentences())
def test_every_sentence_of_the_page_is_used_in_the_code(name: str) -> None:
    # Braces hold a server, a profile or a subject
    begun = name.rpartition("-")[0]
    assert f'"{name}"' in CODE or f'"{begun}-{{' in CODE


def test_every_sentence_used_in_the_code_is_on_the_page() -> None:
    assert set(re.findall(r'said\(\s*"([\w-]+)"', CODE)) <= sentences().keys()


def test_figures_in_sentences_have_their_units() -> None:
    assert said("no-time-for-a-storm", longest=90, left=3.2) == (
        "a storm may take 90 s, and 3 s were left"
    )
    assert said("why-queue", question=SimpleNamespace(clients=1)) == "all of 1 client may wait"

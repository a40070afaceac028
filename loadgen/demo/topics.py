"""The topics that the demo lists: those it makes, or an operator's own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadgen.demo.plan import mean_answer_bytes
from loadgen.errors import UsageError
from loadgen.scenario import NamespaceExpectation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadgen.topics.corpus import Corpus
    from loadgen.topics.reading import OwnTopics


_NUMBER = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([kKmM]?)")
_FACTORS = {"": 1, "k": 1000, "m": 1_000_000}


def parse_topics(text: str) -> int | None:
    """Return the number that ``--topics`` gives, ``1M`` for example; None: it names a file.

    Raises:
        UsageError: The number is not a whole one above 0.
    """
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        return None
    topics = round(float(found[1]) * _FACTORS[found[2].lower()], 6)
    if topics < 1 or topics != int(topics):
        raise UsageError(f"--topics {text} is not a whole number of topics above 0")
    return int(topics)


@dataclass(frozen=True)
class DemoTopics:
    """The topics that the broker imports, and the namespaces that clients ask for.

    Attributes:
        namespaces: What is listed, with what a right answer holds where that is known.
        answer_bytes: The mean size of an answer.
        skip_invalid: Whether invalid topics of the source are left out.
    """

    source: Path
    topics: int
    namespaces: tuple[NamespaceExpectation, ...]
    answer_bytes: int
    skip_invalid: bool = False

    @property
    def import_arguments(self) -> tuple[str, ...]:
        """The arguments with which a broker imports them before it is ready."""
        skip = ("--skip-invalid",) if self.skip_invalid else ()
        return ("--import", str(self.source), *skip)


def topics_of_corpus(corpus: Corpus) -> DemoTopics:
    """Return all namespaces of a corpus."""
    manifest = corpus.manifest
    return DemoTopics(
        corpus.directory,
        manifest.topics,
        tuple(
            NamespaceExpectation(name=name, topics=entry.topics, hash=entry.hash)
            for name, entry in manifest.namespaces.items()
        ),
        mean_answer_bytes(manifest.topics, manifest.name_bytes, len(manifest.namespaces)),
    )


def topics_of_operator(own: OwnTopics, names: Sequence[str]) -> DemoTopics:
    """Return the named namespaces of an operator's file, or its largest one.

    Answers are checked against their own hash and each other: no hash is known beforehand.

    Raises:
        UsageError: A namespace is not in the file.
    """
    chosen = own.chosen(names)
    listed = sum(size.topics for size in chosen.values())
    name_bytes = sum(size.name_bytes for size in chosen.values())
    return DemoTopics(
        own.path,
        own.topics,
        tuple(NamespaceExpectation(name=name) for name in chosen),
        mean_answer_bytes(listed, name_bytes, len(chosen)),
        skip_invalid=own.skip_invalid,
    )

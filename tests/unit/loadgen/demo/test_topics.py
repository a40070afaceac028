from __future__ import annotations

import pytest

from loadgen.demo.topics import parse_topics
from loadgen.errors import UsageError


@pytest.mark.parametrize(
    ("text", "topics"),
    [("50000", 50_000), ("1M", 1_000_000), ("20k", 20_000), ("1.5m", 1_500_000),
     ("topics.txt", None), ("./1M", None), ("", None), ("1G", None)],
)  # fmt: skip
def test_a_number_of_topics_is_told_from_a_file(text: str, topics: int | None) -> None:
    assert parse_topics(text) == topics


@pytest.mark.parametrize("text", ["0", "0.5", "1.0001k"])
def test_a_number_that_makes_no_topics_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a whole number of topics above 0"):
        parse_topics(text)

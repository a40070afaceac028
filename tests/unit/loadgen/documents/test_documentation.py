"""The page about scenarios shows what there is."""

from __future__ import annotations

import re
from pathlib import Path

from loadgen.documents.reading import parse_document, read_document, shipped

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "scenarios.md").read_text(encoding="utf-8")


def test_the_table_has_every_shipped_scenario() -> None:
    # When
    documents = [read_document(name) for name in shipped()]
    rows = [f"| `{each.name}` | {each.head.kind} | {each.title} |" for each in documents]
    # Then
    assert re.findall(r"^\| `[\w-]+` \| [\w-]+ \| .* \|$", PAGE, re.MULTILINE) == rows
    assert max(len(each.title) for each in documents) < 78  # one line of a list


def test_the_commented_example_is_a_scenario() -> None:
    # Given
    (example,) = re.findall(r"<!-- a test reads this one -->\n```yaml\n(.*?)```", PAGE, re.DOTALL)
    # When
    document = parse_document(example)
    # Then
    assert document.name == "monday-restart"
    names = [group["name"] for group in document.load()["groups"]]
    assert names == ["polite", "java-watch", "java-poll", "cpp", "go", "slow"]
    assert document.load()["groups"][-1]["disconnects"]["share"] == 0.5

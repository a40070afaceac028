"""Other languages' client lines in docs/testing-your-application.md."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing-your-application.md").read_text(encoding="utf-8")
LINES = re.findall(
    r"^\[`\w+`\]\(\.\./(examples/client_tests/[^)]*)\)[^\n]*\n\n```(?:java|rust)\n(.*?)^```$"
    r"|\[`rust`\]\(\.\./(examples/[^)]*)\)[^\n]*\n\n```rust\n(.*?)^```$",
    PAGE,
    re.MULTILINE | re.DOTALL,
)
SHOWN = [tuple(part for part in found if part) for found in LINES]


def test_the_page_shows_spring_reactive_flink_and_rust_programs() -> None:
    assert [Path(path).parts[2] for path, _ in SHOWN] == ["spring", "reactive", "flink", "rust"]


@pytest.mark.parametrize(("path", "lines"), SHOWN)
def test_every_shown_line_is_in_its_program(path: str, lines: str) -> None:
    program = [line.strip() for line in (ROOT / path).read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines.splitlines() if line not in program] == []

"""Invalid rows: all are counted, the first are reported."""

from pathlib import Path

import pytest

from proto.invalid_rows import MAX_TOLD_ROWS, InvalidRows, shown


def test_reported_rows_are_bounded_while_all_invalid_rows_are_counted() -> None:
    invalid = InvalidRows(Path("t.txt"))
    for batch in range(3):
        invalid.rows += 1_000
        invalid.add(400, [f"line {batch}.{n}" for n in range(15)])
    lines = str(invalid).splitlines()
    assert lines[0] == "t.txt: 1,200 of 3,000 topics are invalid"
    assert len(lines) == 1 + MAX_TOLD_ROWS + 1
    assert lines[-2:] == ["  line 1.4", "  and 1,180 more"]


@pytest.mark.parametrize(
    ("text", "excerpt"),
    [("a\nb", r"'a\nb'"), (b"\xff", r"b'\xff'"), ("x" * 10_000, f"'{'x' * 80}'...")],
)
def test_a_long_value_is_shown_shortened(text: str | bytes, excerpt: str) -> None:
    assert shown(text) == excerpt

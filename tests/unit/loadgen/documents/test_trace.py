"""Moments of a recorded log, in seconds or as times, count from the first."""

from pathlib import Path

import pytest

from loadgen.documents.reading import read_trace
from loadgen.errors import UsageError


@pytest.mark.parametrize(
    ("text", "moments"),
    [
        ("1700000000.25 pod a\n1700000001 pod b\n", [0.0, 0.75]),
        ("3\n1,x\n\n# no\n2.5\n", [0.0, 1.5, 2.0]),
        ("2026-11-23T08:00:00Z a\n2026-11-23T09:00:01.5+01:00 b\n", [0.0, 1.5]),
        ("[2026-11-23 08:00:00,250] INFO\n[2026-11-23 08:00:01,000] INFO\n", [0.0, 0.75]),
        ("2026-11-23T08:00:00.25\n", [0.0]),
    ],
)
def test_times_at_the_beginning_of_lines_count_from_the_first(
    tmp_path: Path, text: str, moments: list[float]
) -> None:
    (tmp_path / "a.log").write_text(text)
    assert read_trace(tmp_path / "a.log") == moments


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1\nstarted pod\n", r"a\.log, line 2: 'started pod' begins with no moment"),
        ("2026-11-23\n", r"line 1: '2026-11-23' begins with no moment"),
        ("2026-13-23T08:00:00Z\n", r"line 1: '2026-13-23T08:00:00Z' begins with no moment"),
        ("# nothing\n", r"a\.log has no moment"),
        (
            "# epoch\n3\n1700000000 a\n",
            r"a\.log, line 3: this moment is 1,699,999,997 s after the first, of line 2: a "
            r"trace lasts at most 86,400 s",
        ),
    ],
)
def test_a_trace_without_valid_times_is_refused_with_the_line(
    tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "a.log").write_text(text)
    with pytest.raises(UsageError, match=sentence):
        read_trace(tmp_path / "a.log")

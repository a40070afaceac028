"""The question of an advice is checked before anything is tried, in one sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadgen.commands.advise import advise, parse_families
from loadgen.errors import ExitCode, LoadgenError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


def topics_file(folder: Path, names: int = 20) -> Path:
    path = folder / "topics.txt"
    path.write_text(
        "".join(f"persistent://acme/orders/topic-{each:06d}\n" for each in range(names))
    )
    return path


def test_families_are_read_with_their_clients() -> None:
    assert parse_families(["java-watch=600", "cpp=400"]) == {"java-watch": 600, "cpp": 400}


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["basic=3"], "names no family: there are once, polite"),
        (["cpp"], "has no number of clients .*write cpp=600"),
        (["cpp=0"], "has no number of clients"),
        (["cpp=1", "cpp=2"], "--family cpp is there twice"),
        (["cpp=600000", "go=600000"], "1,200,000 clients are too many"),
    ],
)
def test_families_that_are_none_are_refused(texts: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_families(texts)


def test_topics_come_from_one_place(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give one of them, not 0"):
        advise()
    with pytest.raises(UsageError, match="give one of them, not 2"):
        advise(topics=topics_file(tmp_path), corpus=tmp_path)
    with pytest.raises(UsageError, match=r"--topics .*nowhere\.txt is not there"):
        advise(topics=tmp_path / "nowhere.txt")
    with pytest.raises(UsageError, match="--namespace acme/none has no persistent topic"):
        advise(topics=topics_file(tmp_path), namespace=["acme/none"])


def test_a_cluster_elsewhere_needs_its_owners_word() -> None:
    with pytest.raises(UsageError, match="--yes-this-is-my-cluster"):
        advise(admin_url="http://192.0.2.1:8080")


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("profile", "kafka", "--profile kafka is neither"),
        ("slow_rate", "0", "--slow-rate 0 would be unlimited"),
        ("back_within", "soon", "--back-within 'soon' is not a time"),
        ("accounted", "1MB", "--accounted '1MB' is not a size"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(
    option: str, value: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=said):
        advise(topics=topics_file(tmp_path), **{option: value})  # type: ignore[arg-type]


def test_where_nothing_helps_the_report_says_why_and_the_exit_code_is_99(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given: a byte a second
    out = tmp_path / "out"
    # When
    with pytest.raises(LoadgenError, match="no setting meets the goal") as ended:
        advise(topics=topics_file(tmp_path), read_rate="1", out=out)
    # Then
    assert ended.value.exit_code is ExitCode.THRESHOLDS
    assert "The readers' speed alone makes the goal impossible" in capsys.readouterr().out
    assert "## Nothing helps" in (out / "advice.md").read_text()

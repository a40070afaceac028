"""The question of an advice is checked before anything is tried, in one sentence each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from loadgen.advice.limits import limits_of

from loadgen.commands.advise import advise, deciding, parse_families
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
        (["basic=3"], "is not a family: there are once, polite"),
        (["cpp"], "has no number of clients .*write cpp=600"),
        (["cpp=0"], "has no number of clients"),
        (["cpp=1", "cpp=2"], "--family cpp is given twice"),
        (["cpp=60000", "go=60000"], "120,000 clients are too many"),
    ],
)
def test_families_that_are_none_are_refused(texts: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_families(texts)


def test_topics_come_from_one_place(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give one of these, not 0"):
        advise()
    with pytest.raises(UsageError, match="give one of these, not 2"):
        advise(topics=topics_file(tmp_path), corpus=tmp_path)
    with pytest.raises(UsageError, match=r"--topics .*nowhere\.txt does not exist"):
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
        ("refused", "100%", "--refused '100%' is no goal"),
        ("network", "100GiB", "--network 100GiB is more than 1GiB"),
        ("read_rate", "9" * 400, "--read-rate '9999.*' is not a number of bytes"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(
    option: str, value: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=said):
        advise(topics=topics_file(tmp_path), **{option: value})  # type: ignore[arg-type]


HEAP = "maxTopicListInFlightHeapMemSizeMB"
DIRECT = "maxTopicListInFlightDirectMemSizeMB"
MARK = "pulsarChannelWriteBuffer{}WaterMark"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\nmaxMessageSize=\xff\n", ", line 2: not UTF-8 text"),
        (f"{HEAP}=10\0\n".encode(), f": line 1, {HEAP}='10\\x00': expected a whole number"),
        (f"# none\r\n{HEAP}\r\n".encode(), f", line 2: '{HEAP[:8]}...' is not key=value"),
        (f"{HEAP}=1\n{HEAP}=ten\n".encode(), f": line 2, {HEAP}='ten': expected a whole number"),
        (f"\n{HEAP}={'9' * 5000}\n".encode(), f": line 2, {HEAP}='{'9' * 100}...': expected"),
        (b"maxMessageSize=-1\n", ": line 1, maxMessageSize=-1: Input should be greater"),
        (
            f"{MARK.format('High')}=10\n{MARK.format('Low')}=20\n".encode(),
            f": line 2, {MARK.format('Low')}=20 is above",
        ),
    ],
)
@pytest.mark.parametrize("role", ["broker", "proxy"])
def test_a_file_that_a_server_would_not_start_with_is_refused_by_its_line(
    role: str, content: bytes, said: str, tmp_path: Path
) -> None:
    # Given
    path = tmp_path / f"{role}.conf"
    path.write_bytes(content)
    # When
    with pytest.raises(UsageError) as refused:
        advise(topics=topics_file(tmp_path), **{f"{role}_conf": path})  # type: ignore[arg-type]
    # Then
    assert str(refused.value).startswith(f"--{role}-conf {path}{said}")


def test_a_file_of_windows_counts_as_it_is_read_by_a_server(tmp_path: Path) -> None:
    # Given: its first mark, its line ends, a key twice, and what means the default
    path = tmp_path / "broker.conf"
    lines = (f"{HEAP}=7", f"{HEAP}=+9", f"{DIRECT}=null", "bindAddress=0.0.0.0")
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    # When
    limits = limits_of(deciding("broker", path))
    # Then
    assert (limits.heap_mb, limits.direct_mb) == (9, 100)


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


def test_with_json_nothing_is_beside_the_advice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # When
    with pytest.raises(LoadgenError, match="no setting meets the goal"):
        advise(topics=topics_file(tmp_path), read_rate="1", out=tmp_path / "out", as_json=True)
    # Then
    told = capsys.readouterr()
    assert not json.loads(told.out)["met"]
    assert not told.err

"""The question of an advice is checked before any trial, in one sentence each."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from loadgen.commands import advise as command
from loadgen.commands import shown
from loadgen.commands.advise import advise, families_document, question_of
from loadgen.commands.options import own_files
from loadgen.documents.service_times import PULSAR
from loadgen.errors import ExitCode, LoadgenError, UsageError
from loadgen.studies.advise.advice import Advice, Confirmation
from loadgen.studies.advise.advice import advise as search
from loadgen.studies.advise.goal import Goal, Outcome
from loadgen.studies.advise.limits import Setting
from loadgen.studies.advise.question import Question

SLOW = ["clients.java-watch.read.rate=1"]


def topics_file(folder: Path, names: int = 20) -> Path:
    path = folder / "topics.txt"
    path.write_text(
        "".join(f"persistent://acme/orders/topic-{each:06d}\n" for each in range(names))
    )
    return path


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["java=3"], "--family 'java' is no family; families are polite, java-watch, "),
        (["cpp"], "write --family NAME=COUNT, as cpp=400: "),
        (["cpp=0"], "must be at least 1"),
        (["cpp=1", "cpp=2"], "two groups have the same name"),
    ],
)
def test_an_unknown_malformed_or_repeated_client_family_is_refused(
    texts: list[str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=said):
        advise(topics=topics_file(tmp_path), family=texts)


def test_exactly_one_existing_source_of_topics_is_required(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="say whose topics"):
        advise()
    with pytest.raises(UsageError, match="both name the topics"):
        advise(topics=topics_file(tmp_path), admin_url="http://127.0.0.1:1")
    with pytest.raises(UsageError, match=r"--topics .*nowhere\.txt does not exist"):
        advise(topics=tmp_path / "nowhere.txt")
    with pytest.raises(UsageError, match="--namespace acme/none has no persistent topic"):
        advise(topics=topics_file(tmp_path), namespace=["acme/none"])


def test_an_invalid_setting_is_reported_by_its_set_option(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--set clients\.cpp\.read=never: "):
        advise(topics=topics_file(tmp_path), family=["cpp=5"], settings=["clients.cpp.read=never"])


def test_client_families_beside_a_scenario_are_refused() -> None:
    with pytest.raises(UsageError, match="--family excludes a scenario"):
        advise("storm", family=["cpp=5"])


def test_a_remote_cluster_is_refused_without_the_confirmation_of_its_owner() -> None:
    with pytest.raises(UsageError, match="--yes-this-is-my-cluster"):
        advise(admin_url="http://192.0.2.1:8080")


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("back_within", "soon", "--back-within 'soon' must be a time"),
        ("accounted", "1MiB", "--accounted '1MiB' is not a size"),
        ("refused", "many", "--refused 'many' must be a share"),
        ("network", "wide", "--network 'wide' must be"),
        ("minutes", -1.0, "--minutes -1: must be above 0"),
        ("minutes", math.nan, "--minutes nan: must be above 0"),
        ("settings", ["clients.java-watch.read.rate=quick"], "read.rate 'quick': must be"),
        ("confirm_at", "127.0.0.1:6650", "127.0.0.1:6650: write it as pulsar://host:6650"),
        ("confirm_at", "pulsar://10.0.0.1:6650", "add --yes-this-is-my-cluster"),
    ],
)
def test_an_option_with_an_invalid_value_is_refused(option, value, said, tmp_path) -> None:
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
        (b"maxMessageSize=-1\n", ": line 1, maxMessageSize='-1': expected a whole number from 1"),
        (
            f"{MARK.format('High')}=10\n{MARK.format('Low')}=20\n".encode(),
            f": line 2, {MARK.format('Low')}=20 is above",
        ),
    ],
)
@pytest.mark.parametrize("role", ["broker", "proxy"])
def test_an_invalid_server_configuration_file_is_refused_with_its_line(
    role: str, content: bytes, said: str, tmp_path: Path
) -> None:
    path = tmp_path / f"{role}.conf"
    path.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        advise(topics=topics_file(tmp_path), **{f"{role}_conf": path})  # type: ignore[arg-type]
    assert str(refused.value).startswith(f"--{role}-conf {path}{said}")


def test_a_configuration_file_from_windows_is_read_as_by_a_server(tmp_path: Path) -> None:
    # The first mark, the line ends, a repeated key, and the value for the default
    path = tmp_path / "broker.conf"
    lines = (f"{HEAP}=7", f"{HEAP}=+9", f"{DIRECT}=null", "bindAddress=0.0.0.0")
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    asked, files = families_document(["cpp=5"], ()), own_files(path, None)
    limits = question_of(asked, (), Goal(), "pulsar", files).today.broker
    assert (limits.heap_mb, limits.direct_mb) == (9, 100)


def test_if_no_setting_meets_the_goal_the_report_says_why_and_the_exit_code_is_99(
    tmp_path, capsys
) -> None:
    # A byte a second
    out = tmp_path / "out"
    with pytest.raises(LoadgenError, match="no setting meets the goal") as ended:
        advise(topics=topics_file(tmp_path), settings=SLOW, out=out)
    assert ended.value.exit_code is ExitCode.THRESHOLDS
    assert "The readers' speed alone makes the goal impossible" in capsys.readouterr().out
    assert "## Why" in (out / "advice.md").read_text()


def answer(proxy: bool, folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Return an advice: luck today, the switch on, most strains failing, and a real storm."""

    def storm(asked: Question, setting: Setting) -> Outcome:
        limits, slow = setting.of(setting.servers[0]), asked.times.accept / PULSAR.accept
        harder = asked.clients > 1_250 or asked.largest.topics > 20 or slow > 1
        met = limits.heap_mb >= 5 and not (harder and limits.direct_mb < 400 and slow != 3)
        back = asked.clients if met and not (slow == 3 and limits.direct_mb < 100) else 123
        return Outcome(asked.clients, back, 12.3, 5_000, 5_000 * (back == 123) // 3)

    def confirmed(found: Advice, *_: object, **__: object) -> Advice:
        assert found.setting
        assert found.outcome
        return replace(found, confirmations=(Confirmation(found.setting, found.outcome, met=True),))

    files = {f"{role}_conf": folder / f"{role}.conf" for role in ("broker", "proxy")[: 1 + proxy]}
    for file in files.values():
        file.write_text(f"{HEAP}=20\n{DIRECT}=20\n")
    with files["broker_conf"].open("a") as broker:
        broker.write("pulsarChannelPauseReceivingRequestsIfUnwritable=true\n")
    patch.setattr(shown, "COLUMNS", 80)
    patch.setattr(command, "search", lambda asked, on_try: search(asked, storm, on_try))
    patch.setattr(command, "confirm", confirmed)
    patch.chdir(folder)
    advise(topics=topics_file(folder), **files)  # type: ignore[arg-type]


@pytest.mark.parametrize("proxy", [False, True])
def test_an_advice_prints_at_most_25_lines_of_80_columns(
    proxy, tmp_path, monkeypatch, capsys
) -> None:
    answer(proxy, tmp_path, monkeypatch)
    lines = capsys.readouterr().out.splitlines()
    assert sum(-(-len(line) // 80) for line in lines) <= 25


def test_each_tried_setting_is_logged_with_its_limits_and_its_strain(
    tmp_path, monkeypatch, capsys
) -> None:
    answer(False, tmp_path, monkeypatch)
    lines = capsys.readouterr().err.splitlines()
    assert "  try 1: 20 MB heap, 20 MB direct: goal met in 12.3 s" in lines
    harder = "20 MB heap, 20 MB direct, a broker 3x as slow: goal missed: 88 % late, 33 % refused"
    assert any(line.endswith(f": {harder}") for line in lines)


def test_with_json_only_the_advice_is_printed(tmp_path, capsys) -> None:
    with pytest.raises(LoadgenError, match="no setting meets the goal"):
        advise(topics=topics_file(tmp_path), settings=SLOW, out=tmp_path / "out", as_json=True)
    told = capsys.readouterr()
    assert not json.loads(told.out)["met"]
    assert not told.err

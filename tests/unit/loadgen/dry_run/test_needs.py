"""What a run needs follows from its scenario, and is held against the machine before it begins."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from loadgen.__main__ import main
from loadgen.commands.preflight import require_room
from loadgen.documents.reading import parse_document, read_document, shipped
from loadgen.dry_run.machine import Machine, this_machine
from loadgen.dry_run.needs import Needs, RunShape, needs_of
from loadgen.dry_run.obstacles import DoesNotFitError, obstacles, require_fit
from loadgen.dry_run.schedule import group_schedules
from loadgen.dry_run.view import dry_run_document, plot, schedule_table
from loadgen.errors import ExitCode
from loadgen.run.options import RunOptions

if TYPE_CHECKING:
    from pathlib import Path

# Answers of 1,000 names of 100 bytes: 102,040 bytes on the wire.
DOCUMENT = parse_document(
    """
kind: discovery
cluster:
  profile: PROFILE
  proxy: {maxTopicListInFlightHeapMemSizeMB: 3, maxTopicListInFlightDirectMemSizeMB: 2}
  topics: {namespaces: 4, per_namespace: 1000}
load:
  groups:
    - {name: go, family: go, clients: 100, arrivals: {kind: constant, per_second: 10}}
    - name: beat
      clients: 10
      repeat_seconds: 5s
      arrives_at_seconds: 2s
      reader: {rate_bytes_per_second: 51020}
    - {name: silent, clients: 5, pipelined: 3, reader: {never: true}}
  phases: {measure_seconds: 20s}
""".replace("PROFILE", "pulsar")
)
FAMILIES = """
kind: discovery
load:
  groups:
    - {name: go, family: go, clients: 100}
    - {name: java, family: java-watch, clients: 50}
"""
SHAPE = RunShape(tasks=2, proxy=True, own_servers=True, makes_topics=True)
ANSWER = 102_040
ROOMY = Machine(1_000_000, 28_000, 4096, 1 << 50, 1 << 50)


def needs(shape: RunShape = SHAPE, profile: str = "pulsar") -> Needs:
    cluster = DOCUMENT.cluster.model_copy(update={"profile": profile})
    return needs_of(DOCUMENT.scenario, cluster, shape)


def test_the_schedule_of_each_group() -> None:
    # When
    go, beat, silent = group_schedules(DOCUMENT.scenario, DOCUMENT.cluster)
    # Then
    assert (len(go.starts), go.starts[0], go.last_seconds) == (100, 0.0, 9.9)
    assert list(np.unique(beat.starts)) == [2.0, 7.0, 12.0, 17.0]
    assert (len(beat.starts), beat.reading_seconds) == (40, 2.0)
    assert (len(silent.starts), silent.never_read) == (15, True)
    assert {go.answer_bytes, beat.answer_bytes, silent.answer_bytes} == {ANSWER}
    assert (go.later, beat.later, silent.later) == (True, False, False)


def test_a_group_whose_starts_are_spread_has_its_rate_everywhere() -> None:
    go = group_schedules(DOCUMENT.scenario, DOCUMENT.cluster)[0]
    assert go.rates(5, 10.0) == [10.0] * 5


def test_connections_descriptors_and_ports() -> None:
    # When
    found = needs()
    # Then
    assert (found.connections, found.ports) == (115, {"127.0.0.1": 115})
    assert {each.name: each.descriptors for each in found.processes} == {
        "worker": 58 + 64,
        "proxy": 115 + 115 + 64,
        "broker": 115 + 64,
    }
    assert [each.count for each in found.processes] == [2, 1, 1]
    assert found.connecting_at_once == 115


def test_a_proxy_of_profile_floodgate_shares_its_connections() -> None:
    found = {each.name: each.connections for each in needs(profile="floodgate").processes}
    assert (found["proxy"], found["broker"]) == (115 + 8, 8)


def test_a_family_that_tunnels_has_a_second_connection_through_the_proxy() -> None:
    # Given
    document = parse_document(f"extends: storm\n{FAMILIES}")
    # When
    found = needs_of(document.scenario, document.cluster, SHAPE)
    direct = needs_of(document.scenario, document.cluster, replace(SHAPE, proxy=False))
    # Then
    assert (found.connections, found.tunnels) == (100 + 2 * 50, 50)
    assert document.scenario.connecting == 150  # tunnels come later
    assert {each.name: each.connections for each in found.processes} == {
        "worker": 100,
        "proxy": 200 + 50 + 8,
        "broker": 50 + 8,
    }
    assert (direct.connections, direct.tunnels) == (150, 0)


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("{kind: watch-churn, load: {clients: 20}}", 20),
        ("{kind: produce-consume, load: {clients: 5, subscriptions: 3}}", 5 * (1 + 3)),
    ],
)
def test_a_kind_whose_connections_are_tunnels_has_one_of_each_task_to_look_up(
    kind: str, count: int
) -> None:
    # Given
    document = parse_document(kind)
    # When
    found = needs_of(document.scenario, document.cluster, SHAPE)
    direct = needs_of(document.scenario, document.cluster, replace(SHAPE, proxy=False))
    # Then
    assert (found.connections, found.tunnels) == (count + 2, count)
    assert document.scenario.connecting == count
    assert (direct.connections, direct.tunnels) == (count, 0)
    assert {each.name: each.connections for each in found.processes} == {
        "worker": count // 2 + 1,
        "proxy": 2 * count + 2 + 8,
        "broker": count + 8,
    }


def test_bytes_in_all_and_at_once() -> None:
    # When
    found = needs()
    # Then: 15 that nobody reads, 10 of a beat, and of go the one client of the moment
    assert (found.answers, found.answer_bytes) == (155, 155 * ANSWER)
    assert found.bytes_at_once == 26 * ANSWER


def test_topics_are_made_for_own_servers_alone() -> None:
    assert (needs().topics, needs().disk_bytes > 100_000) == (4000, True)
    foreign = needs(replace(SHAPE, own_servers=False, makes_topics=False))
    assert (foreign.topics, foreign.disk_bytes < 10_000) == (0, True)
    assert [each.name for each in foreign.processes if each.own] == ["worker"]


def test_every_20000_clients_have_a_source_address() -> None:
    # Given
    document = parse_document("kind: storm\nload: {clients: 45000}")
    # When
    found = needs_of(document.scenario, document.cluster, replace(SHAPE, proxy=False))
    # Then
    assert found.ports == {"127.0.0.1": 20_000, "127.0.0.2": 20_000, "127.0.0.3": 5_000}
    far = needs_of(document.scenario, document.cluster, replace(SHAPE, loopback=False))
    assert far.ports == {"this machine": 45_000}


@pytest.mark.parametrize(
    ("machine", "sentence"),
    [
        (replace(ROOMY, descriptors=150), "the proxy needs 294 descriptors and the hard limit is"),
        (replace(ROOMY, ports=100), "115 connections from 127.0.0.1 need a port each, and net.ip"),
        (replace(ROOMY, backlog=64), "115 clients connect at once, and net.core.somaxconn lets 64"),
        (replace(ROOMY, memory_bytes=1), "of memory are needed and 1 byte are available: use few"),
        (replace(ROOMY, disk_bytes=2), "of disk are needed and 2 bytes are free: choose another"),
    ],
)
def test_what_does_not_fit_is_a_sentence(machine: Machine, sentence: str) -> None:
    assert sentence in obstacles(needs(), machine)[0]
    with pytest.raises(DoesNotFitError, match=sentence[:30]) as caught:
        require_fit(needs(), machine)
    assert caught.value.exit_code is ExitCode.USAGE


def test_what_fits_or_is_not_known_is_no_obstacle() -> None:
    assert obstacles(needs(), ROOMY) == []
    assert obstacles(needs(), Machine(1_000_000)) == []
    foreign = needs(replace(SHAPE, own_servers=False, makes_topics=False, local_workers=False))
    assert obstacles(foreign, Machine(1)) == []


def test_this_machine_has_something_to_give(tmp_path: Path) -> None:
    found = this_machine(tmp_path / "not" / "yet")
    assert found.descriptors > 0
    assert found.disk_bytes


@pytest.mark.parametrize("kind", ["storm", "discovery"])
def test_answers_are_those_of_the_namespaces_that_are_asked_for(kind: str) -> None:
    # Given two clients, and many small namespaces that nobody asks for
    document = parse_document(f"""
kind: {kind}
cluster:
  topics: {{namespaces: 2, per_namespace: 1000, further: [{{namespaces: 98, per_namespace: 1}}]}}
load: {"{groups: [{name: all, clients: 2}]}" if kind == "discovery" else "{clients: 2}"}
""")
    # When
    found = needs_of(document.scenario, document.cluster, SHAPE)
    # Then
    assert found.answer_bytes == 2 * ANSWER


def test_programs_get_all_of_it() -> None:
    # When
    told = json.loads(json.dumps(dry_run_document(DOCUMENT, needs(), ROOMY, ["it does not"])))
    # Then
    assert [group["name"] for group in told["groups"]] == ["go", "beat", "silent"]
    assert told["groups"][0]["last_start_seconds"] == 9.9
    assert (told["connections"], told["obstacles"]) == (115, ["it does not"])


@pytest.mark.parametrize("dry", [True, False])
@pytest.mark.parametrize("as_json", [True, False])
def test_clients_that_would_never_start_are_told_before_a_run(
    dry: bool, as_json: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given
    document = parse_document(FAMILIES.replace("50}", "50, arrives_at_seconds: 120s}"))
    options = RunOptions("late", out=tmp_path, executor="virtual")
    # When
    require_room(document, options, None, dry=dry, as_json=as_json)
    # Then
    told = capsys.readouterr()
    sentence = "group java: 50 of 50 clients never start: the last is due at 120.0 s"
    if dry and as_json:
        (warning,) = json.loads(told.out)["warnings"]
        assert warning.startswith(sentence)
    else:
        assert sentence in told.err


@given(rates=st.lists(st.floats(0, 1e6), max_size=50))
def test_a_plot_shows_where_something_starts(rates: list[float]) -> None:
    # When
    drawn = plot(rates)
    # Then
    assert [mark == " " for mark in drawn] == [rate == 0 for rate in rates]
    assert not any(rates) or drawn[rates.index(max(rates))] == "█"


@pytest.mark.parametrize("fits", [True, False])
def test_a_dry_run_starts_nothing_and_the_real_one_checks_the_same(
    fits: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Given
    def nothing(*args: object, **more: object) -> None:
        raise AssertionError

    machine = ROOMY if fits else replace(ROOMY, descriptors=10, ports=3)
    monkeypatch.setattr("loadgen.commands.preflight.this_machine", lambda out: machine)
    monkeypatch.setattr("loadgen.commands.run.cluster_for", nothing)
    words = ["loadgen", "run", "storm", "--out", str(tmp_path / "runs"), "--executor", "process"]
    # When
    codes = []
    for more in ([], ["--json"]):
        monkeypatch.setattr("sys.argv", [*words, "--dry-run", *more])
        with pytest.raises(SystemExit) as ended:
            main()
        codes.append(ended.value.code or 0)
    told = capsys.readouterr()
    # Then
    assert codes == ([0, 0] if fits else [ExitCode.USAGE] * 2)
    assert "descriptors, proxy" in told.out
    assert list(tmp_path.iterdir()) == []
    assert told.err.count("the hard limit is 10") == (0 if fits else 6)
    if not fits:
        monkeypatch.setattr("sys.argv", words)
        with pytest.raises(SystemExit):
            main()
        assert "200 connections from 127.0.0.1 need a port each" in capsys.readouterr().err


@pytest.mark.parametrize("name", shipped())
def test_the_schedule_of_a_shipped_scenario_fits_a_terminal_and_nothing_is_cut(name: str) -> None:
    # Given
    document = read_document(name)
    found = needs_of(document.scenario, document.cluster, SHAPE)
    console = Console(width=80, record=True, file=io.StringIO())
    # When
    console.print(schedule_table(found))
    # Then
    text = console.export_text()
    assert "…" not in text
    assert {group.name.split()[0] for group in found.groups} <= set(text.split())

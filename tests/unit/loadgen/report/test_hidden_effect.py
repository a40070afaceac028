"""A run whose limits were out of sight says so, and what to set."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from loadgen.commands.run_outcome import show
from loadgen.report.hidden_effect import hidden_effect
from loadgen.report.sentences import run_sentences
from loadgen.results.reading import load_summary
from loadgen.run.run import RunResult
from loadgen.places.server_facts import ServerFacts
from tests.support.runs.run_directories import STORMS, write_run
from tests.support.runs.stuck_runs import stuck_summaries

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.results.summary import RunSummary

MB = 1024 * 1024
UNSET = {"floodgateSocketSendBufferBytes": "0", "floodgateProfile": "pulsar"}
SET = {"floodgateSocketSendBufferBytes": "65536", "floodgateProfile": "pulsar"}
SHARING = {"floodgateSocketSendBufferBytes": "65536", "floodgateProfile": "floodgate"}


def swallowed(tmp_path: Path, peak_bytes: int = MB, pending: int | None = MB) -> RunSummary:
    """A run in which nobody was refused, and what its broker held of its 50 MB."""
    summary = load_summary(write_run(tmp_path / "run", STORMS[2], 100))
    broker = summary.processes["broker"]
    assert broker.direct is not None
    broker = replace(
        broker,
        heap=replace(broker.direct, high_water_bytes=peak_bytes // 2),
        direct=replace(broker.direct, high_water_bytes=peak_bytes),
        outbound_pending_peak_bytes=pending,
    )
    return replace(
        summary,
        refused={},
        processes={"broker": broker},
        servers={"broker": ServerFacts("1", UNSET)},
    )


def test_what_the_kernel_swallowed_is_told_with_the_keys_that_help(tmp_path: Path) -> None:
    sentence = hidden_effect(swallowed(tmp_path))
    assert sentence is not None
    assert sentence.startswith(
        "The limits were out of sight: direct memory peaked at 1.0 MB of 50 MB in the broker, as "
        "the kernel's socket buffers took most of the answers (101 MB in all): start the servers "
        "with floodgateSocketSendBufferBytes=65536, or use more --clients"
    )


@pytest.mark.parametrize("send_buffer", ["0", "65536"])
def test_shared_answers_are_named_before_the_kernel(tmp_path: Path, send_buffer: str) -> None:
    settings = {**SHARING, "floodgateSocketSendBufferBytes": send_buffer}
    run = replace(swallowed(tmp_path), servers={"broker": ServerFacts("1", settings)})
    sentence = hidden_effect(run)
    assert sentence is not None
    assert (
        "in the broker, as profile floodgate shares the bytes of equal answers (101 MB in all): "
        "floodgateProfile=pulsar shows what a Pulsar needs." in sentence
    )
    assert ("kernel" in sentence) is (send_buffer == "0")


def test_beside_stuck_peers_more_of_them_are_the_remedy(tmp_path: Path) -> None:
    stuck = stuck_summaries()["stuck-floodgate"].stuck
    assert stuck is not None
    run = replace(swallowed(tmp_path), scenario="stuck", stuck=replace(stuck, pipelined=1))
    for received_bytes in (run.received_bytes, MB):
        sentence = hidden_effect(replace(run, received_bytes=received_bytes))
        assert sentence is not None
        assert "use more --stuck-peers, or more --stuck-pipelined" in sentence
        assert "--read-rate" not in sentence


def test_heap_at_its_limit_is_in_sight(tmp_path: Path) -> None:
    run = swallowed(tmp_path)
    broker = run.processes["broker"]
    assert broker.heap is not None
    heap = replace(broker.heap, high_water_bytes=broker.heap.limit_bytes)
    seen = replace(run, processes={"broker": replace(broker, heap=heap)})
    assert hidden_effect(seen) is None


def test_the_memory_that_is_named_is_the_one_nearer_to_its_limit(tmp_path: Path) -> None:
    run = swallowed(tmp_path, pending=0)
    broker = run.processes["broker"]
    assert broker.heap is not None
    heap = replace(broker.heap, high_water_bytes=2 * MB)
    sentence = hidden_effect(replace(run, processes={"broker": replace(broker, heap=heap)}))
    assert sentence is not None
    assert "heap memory peaked at 2.0 MB of 50 MB in the broker" in sentence


def test_what_waits_in_a_queue_is_no_heap(tmp_path: Path) -> None:
    # Given a heap limit so small that what is queued would be a fifth of it
    summary = swallowed(tmp_path, pending=4 * MB)
    broker = summary.processes["broker"]
    assert broker.heap is not None
    heap = replace(broker.heap, limit_bytes=20 * MB, high_water_bytes=MB)
    # When
    sentence = hidden_effect(replace(summary, processes={"broker": replace(broker, heap=heap)}))
    # Then
    assert sentence is not None


def test_servers_with_a_send_buffer_are_told_of_clients_alone(tmp_path: Path) -> None:
    run = replace(swallowed(tmp_path), servers={"broker": ServerFacts("1", SET)})
    sentence = hidden_effect(run)
    assert sentence is not None
    assert "floodgate" not in sentence
    assert "more --clients, or slower readers" in sentence


def test_a_real_pulsar_has_no_such_keys(tmp_path: Path) -> None:
    sentence = hidden_effect(replace(swallowed(tmp_path), servers={"broker": ServerFacts("4.2.4")}))
    assert sentence is not None
    assert "floodgate" not in sentence


def test_a_storm_that_is_smaller_than_the_limit_is_told_so(tmp_path: Path) -> None:
    sentence = hidden_effect(replace(swallowed(tmp_path), received_bytes=3 * MB))
    assert sentence is not None
    assert "as all answers together are 3.0 MB: use more --clients" in sentence


@pytest.mark.parametrize(
    "seen",
    [
        {"refused": {"TooManyRequests": 1}},
        {"timeout": 1},
        {"processes": {}},
    ],
)
def test_refusals_failures_and_unwatched_servers_warn_of_nothing(
    tmp_path: Path, seen: dict[str, Any]
) -> None:
    assert hidden_effect(replace(swallowed(tmp_path), **seen)) is None


@pytest.mark.parametrize(("peak", "pending"), [(5 * MB, 0), (MB, 5 * MB), (5 * MB, None)])
def test_what_waits_in_a_server_is_in_sight(tmp_path: Path, peak: int, pending: int | None) -> None:
    assert hidden_effect(swallowed(tmp_path, peak, pending)) is None


def test_a_run_without_limits_has_none_to_reach(tmp_path: Path) -> None:
    assert hidden_effect(load_summary(write_run(tmp_path / "off", STORMS[0], 10))) is None


def test_the_report_says_it_too(tmp_path: Path) -> None:
    run = swallowed(tmp_path)
    assert hidden_effect(run) in run_sentences(run)


@pytest.mark.parametrize("as_json", [True, False])
def test_loadgen_run_warns(
    tmp_path: Path, as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given
    directory = write_run(tmp_path / "run", STORMS[2], 10)
    document = json.loads((directory / "summary.json").read_text())
    for process in document["processes"].values():
        process["outbound_pending_peak_bytes"] = 9
        for kind in ("heap", "direct"):
            process[kind]["high_water_bytes"] = 9
    # When
    show(RunResult(directory, document, warnings=("few start",)), as_json=as_json)
    # Then it stays off what programs read
    printed = capsys.readouterr()
    told = printed.err if as_json else printed.out
    assert "few start" in told
    assert "The limits were out of sight" in told
    if as_json:
        assert json.loads(printed.out) == document
        assert [list(json.loads(line)) for line in printed.err.splitlines()] == [["warning"]] * 2

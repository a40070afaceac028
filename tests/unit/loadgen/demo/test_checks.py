"""The demo passes only if it showed the truth; every verdict is one sentence with figures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from loadgen.demo.checks import demo_checks, exit_code, hidden_storm, own_checks
from loadgen.demo.plan import StormSize
from loadgen.errors import ExitCode
from loadgen.results.summary import AccountedMemory, Latency, ProcessMemory, RunSummary

if TYPE_CHECKING:
    from loadgen.results.checks import CheckResult

MB = 1024 * 1024
FULL = StormSize(clients=1000, answer_bytes=1_060_000)


def accounted(peak_bytes: int, final_bytes: int = 0) -> AccountedMemory:
    return AccountedMemory(50 * MB, peak_bytes, peak_bytes, final_bytes)


def process(over_idle_mb: int, pending_mb: int = 0, used_mb: int | None = None) -> ProcessMemory:
    part = None if used_mb is None else accounted(used_mb * MB)
    over = over_idle_mb * MB
    return ProcessMemory(part, part, pending_mb * MB, 90 * MB, 90 * MB + over, over, over, 0, 0)


def summary(name: str, **changes: Any) -> RunSummary:
    values: dict[str, Any] = {
        "name": name,
        "label": name,
        "clients": 1000,
        "answered": 1000,
        "refused": {},
        "wrong": 0,
        "timeout": 0,
        "disconnected": 0,
        "unreachable": 0,
        "latency_seconds": Latency(11.0, 12.0, 13.0),
        "received_bytes": 0,
        "start_error_seconds": 0.001,
        "client_start_error_seconds": 0.1,
        "generator_limited": False,
        "interrupted": False,
        "processes": {},
    }
    return RunSummary(**(values | changes))


def good_runs() -> dict[str, RunSummary]:
    return {
        "off": summary("off", processes={"broker": process(500, 350), "proxy": process(900, 780)}),
        "pulsar": summary(
            "pulsar",
            answered=300,
            refused={"TooManyRequests: full": 700},
            processes={"broker": process(60, 40, 45), "proxy": process(70, 45, 50)},
        ),
        "floodgate": summary(
            "floodgate",
            processes={"broker": process(30, 40, 45), "proxy": process(60, 45, 49)},
        ),
    }


def verdicts(runs: dict[str, RunSummary], size: StormSize = FULL) -> dict[str, CheckResult]:
    return {check.name: check for check in demo_checks(runs, size)}


def failed(runs: dict[str, RunSummary], size: StormSize = FULL) -> set[str]:
    return {name for name, check in verdicts(runs, size).items() if not check.passed}


def with_process(run: RunSummary, name: str, **changes: Any) -> RunSummary:
    changed = replace(run.processes[name], **changes)
    return replace(run, processes={**run.processes, name: changed})


def with_off_over_idle(over_idle_mb: int) -> dict[str, RunSummary]:
    runs = good_runs()
    processes = {"broker": process(0, 350), "proxy": process(over_idle_mb, 780)}
    return {**runs, "off": replace(runs["off"], processes=processes)}


def test_good_runs_pass_every_check() -> None:
    runs = good_runs()
    checks = demo_checks(runs, FULL)
    assert failed(runs) == set()
    assert exit_code(runs.values(), checks) is ExitCode.PASSED
    assert all(check.sentence.endswith(".") for check in checks)


def test_a_reproduced_fault_gets_no_tick() -> None:
    found = verdicts(good_runs())
    assert found["effect_visible"].sentence.startswith("Reproduced: ")
    marked = {name for name, check in found.items() if check.mark != "✓"}
    assert marked == {"effect_visible", "pulsar_refuses"}


@pytest.mark.parametrize("kind", ["wrong", "timeout", "disconnected", "unreachable"])
@pytest.mark.parametrize("name", ["off", "pulsar", "floodgate"])
def test_client_without_a_proper_end_fails(name: str, kind: str) -> None:
    runs = good_runs()
    changes: dict[str, Any] = {"answered": runs[name].answered - 1, kind: 1}
    runs[name] = replace(runs[name], **changes)
    assert failed(runs) == {"every_client_heard"}


def test_missing_client_fails() -> None:
    runs = good_runs()
    runs["pulsar"] = replace(runs["pulsar"], answered=299)
    assert failed(runs) == {"every_client_heard"}


def test_wrong_answer_decides_the_exit_code() -> None:
    runs = good_runs()
    runs["off"] = replace(runs["off"], answered=999, wrong=1)
    assert exit_code(runs.values(), demo_checks(runs, FULL)) is ExitCode.CORRECTNESS


def test_failed_check_is_a_failed_threshold() -> None:
    runs = good_runs()
    runs["floodgate"] = replace(runs["floodgate"], answered=999, refused={"x": 1})
    assert failed(runs) == {"floodgate_refuses_none"}
    assert exit_code(runs.values(), demo_checks(runs, FULL)) is ExitCode.THRESHOLDS


@pytest.mark.parametrize("kind", ["heap", "direct"])
def test_memory_over_its_limit_fails(kind: str) -> None:
    runs = good_runs()
    over = accounted(50 * MB + 1)
    runs["pulsar"] = with_process(runs["pulsar"], "proxy", **{kind: over})
    assert failed(runs) == {"within_limits"}
    assert f"{kind} in the proxy of “pulsar”" in verdicts(runs)["within_limits"].sentence


def test_bytes_not_given_back_fail() -> None:
    runs = good_runs()
    left = accounted(MB, final_bytes=4096)
    runs["floodgate"] = with_process(runs["floodgate"], "broker", direct=left)
    assert failed(runs) == {"everything_returned"}
    assert "4,096 bytes of direct in the broker" in verdicts(runs)["everything_returned"].sentence


def test_hidden_effect_fails() -> None:
    # Given a run without limits in which neither server held 300 MB
    runs = good_runs()
    for name in ("broker", "proxy"):
        runs["off"] = with_process(runs["off"], name, outbound_pending_peak_bytes=300 * MB - 1)
    # Then the demo says so
    assert failed(runs) == {"effect_visible"}
    assert "Not reproduced" in verdicts(runs)["effect_visible"].sentence


def test_either_server_may_show_the_effect() -> None:
    runs = good_runs()
    runs["off"] = with_process(runs["off"], "proxy", outbound_pending_peak_bytes=0)
    runs["off"] = with_process(runs["off"], "broker", outbound_pending_peak_bytes=300 * MB)
    assert failed(runs) == set()


def test_small_saving_fails() -> None:
    assert failed(with_off_over_idle(5 * 90)) == set()
    assert failed(with_off_over_idle(5 * 90 - 1)) == {"memory_ratio"}


def test_ratio_is_not_judged_in_a_small_storm() -> None:
    runs = good_runs()
    runs["off"] = with_process(runs["off"], "proxy", resident_over_idle_bytes=0)
    small = StormSize(clients=50, answer_bytes=1_060_000)
    assert failed(runs, small) == set()
    assert verdicts(runs, small)["memory_ratio"].sentence.startswith("Not judged")
    assert verdicts(runs, small)["memory_ratio"].mark == "–"  # noqa: RUF001


def test_hungry_broker_fails() -> None:
    runs = good_runs()
    runs["floodgate"] = with_process(
        runs["floodgate"], "broker", resident_over_idle_bytes=64 * MB + 1
    )
    assert failed(runs) == {"broker_over_idle"}


def test_unwatched_servers_fail_rather_than_pass() -> None:
    runs = {name: replace(run, processes={}) for name, run in good_runs().items()}
    assert failed(runs) == {"within_limits", "effect_visible", "memory_ratio", "broker_over_idle"}


def test_unknown_figures_fail_rather_than_pass() -> None:
    # Given servers that keep no high-water mark and did not say what they hold at the end
    runs = good_runs()
    unknown = AccountedMemory(50 * MB, None, 45 * MB, None)
    runs["floodgate"] = with_process(runs["floodgate"], "proxy", heap=unknown)
    # Then
    assert failed(runs) == {"within_limits", "everything_returned"}
    assert "unknown bytes of heap" in verdicts(runs)["everything_returned"].sentence


def test_a_rehearsal_judges_neither_refusals_nor_memory() -> None:
    # Given a cluster that refuses even under floodgate, and saves nothing
    runs = good_runs()
    runs["floodgate"] = replace(runs["pulsar"], name="floodgate")
    # Then
    assert all(check.passed for check in own_checks(runs))


def test_a_rehearsal_whose_figures_cannot_be_relied_on_fails() -> None:
    runs = good_runs()
    runs["pulsar"] = replace(runs["pulsar"], answered=200)
    assert {check.name for check in own_checks(runs) if not check.passed} == {"every_client_heard"}


def test_a_rehearsal_of_a_cluster_without_limits_has_none_to_keep() -> None:
    checks = own_checks({"off": good_runs()["off"]})
    assert [check.name for check in checks] == ["every_client_heard", "everything_returned"]


def test_a_small_storm_is_told_and_fails_nothing() -> None:
    runs = good_runs()
    assert hidden_storm(runs["off"], FULL) is None
    for name in ("broker", "proxy"):
        runs["off"] = with_process(runs["off"], name, outbound_pending_peak_bytes=2 * MB)
    told = hidden_storm(runs["off"], FULL)
    assert told is not None
    assert "at most 2.0 MB of the 1,011 MB of topic lists waited in one server" in told
    assert told.index("--namespace") < told.index("--clients") < told.index("--read-rate")

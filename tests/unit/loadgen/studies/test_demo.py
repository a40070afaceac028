"""The demo runs shipped documents in both profiles."""

import json
from pathlib import Path
from typing import Any

from loadgen.documents.model import Document
from loadgen.errors import ExitCode
from loadgen.results.results import Results
from loadgen.studies.demo import STORMS, STUCK, DemoOptions, run_demo
from loadgen.studies.demo_checks import grown_bytes
from tests.support.runs.recorded_run import TASK, record_run, request, sample
from tests.unit.loadgen.studies.fake_experiment import FakeExperiment

LIMITS = ("maxTopicListInFlightHeapMemSizeMB", "maxTopicListInFlightDirectMemSizeMB")


def answers(document: Document) -> list[dict[str, Any]]:
    """Return rows of a demo; a Pulsar refuses, and a silent client starves the broker."""
    pulsar = document.servers.profile == "pulsar" and document.servers.broker[LIMITS[0]] != "0"
    if document.name == "stuck":
        beside = [
            request(client=n, group="healthy", due=due, outcome=outcome)
            for n in range(10)
            for due, outcome in (
                (0.5, "answered"),
                (2.0, "refused" if pulsar else "answered"),
                (7.5, "answered"),
            )
        ]
        return [*beside, request(client=99, group="stuck", due=1.05, outcome="disconnected")]
    refused = {"outcome": "refused", "reason": "TooManyRequests"}
    return [
        request(client=n, group=g.name, topics=3, **(refused if pulsar and n else {}))
        for g in document.clients
        for n in range(g.count)
    ]


def test_the_demo_runs_storms_stuck_clients_and_retries_and_checks_each(tmp_path: Path) -> None:
    run = FakeExperiment(answers)
    steps: list[str] = []
    found = run_demo(DemoOptions(30, clients=3, out=tmp_path), steps.append, run)
    ran = [(how.name, how.place, document.servers.profile) for document, how in run.run]
    assert ran == [
        ("off", "processes", "pulsar"),
        ("pulsar", "processes", "pulsar"),
        ("floodgate", "processes", "floodgate"),
        ("stuck-pulsar", "processes", "pulsar"),
        ("stuck-floodgate", "processes", "floodgate"),
        ("pulsar-returning", "virtual", "pulsar"),
    ]
    servers = run.run[0][0].servers
    without = [keys[name] for keys in (servers.broker, servers.proxy or {}) for name in LIMITS]
    assert without == ["0"] * 4
    checks = {check.name: (check.mark, check.sentence) for check in found.checks}
    assert checks["off"] == ("✓", "“Limits off”: requests.failed.rate == 0%: 0 %.")
    assert checks["pulsar"][0] == "✗"  # The servers were not watched.
    assert "broker.resident.rise <= 64MiB: not measured" in checks["floodgate"][1]
    assert checks["refused"] == (
        "!",
        "Reproduced: with limits as in Pulsar 2 of 3 clients were refused, in Floodgate 0.",
    )
    starved = (
        "Of 10 listings due while it was connected, 0 were answered in that time and 10 refused"
    )
    assert starved in checks["stuck_starves_pulsar"][1]
    assert checks["stuck_starves_pulsar"][0] == "!"
    assert "memory_ratio" not in checks  # The storm is too small for a ratio.
    expected = [document.expect[0] for document, _ in run.run[:5]]
    assert expected == [
        *["requests.failed.rate == 0%"] * 2,
        "requests.answered.rate == 100%",
        "healthy.list.failed.rate == 0%",
        "healthy.list.answered == 100%",
    ]
    assert found.last_words[0].startswith("Real consumers retry.")
    assert found.exit_code is ExitCode.THRESHOLDS  # memory was not measured
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["schema_version"], summary["passed"], summary["clients"]) == (4, False, 3)
    assert summary["duration_seconds"] > 0  # Required by the proof.
    assert [each["name"] for each in summary["checks"]] == [each.name for each in found.checks]
    assert summary["runs"]["pulsar"]["reasons"][0]["reason"] == "TooManyRequests"
    beside = {name: summary["runs"][f"stuck-{name}"]["beside"] for name in ("pulsar", "floodgate")}
    assert [beside[name]["refused"] for name in beside] == [10, 0]
    assert [beside[name]["due"] for name in beside] == [10, 10]


def test_a_late_generator_is_noted_beside_the_verdict_of_the_demo(tmp_path: Path) -> None:
    run = FakeExperiment(answers, tasks=[{**TASK, "loop_lag_max_seconds": 3.0}])
    found = run_demo(DemoOptions(30, clients=3, out=tmp_path), run=run)
    assert found.headline == "failed: 5 of 8 checks failed"
    assert [note.partition(":")[0] for note in found.notes] == [
        f"“{each.label}”" for each in (*STORMS, *STUCK)
    ]
    assert "once its event loop was 3.00 s late" in found.notes[0]
    assert found.notes[0].endswith("decide the exit code: it is not 98.")


def test_the_peak_memory_of_two_servers_is_of_the_same_moment(tmp_path: Path) -> None:
    told = [
        sample("resident", at, value, process)
        for process, values in {"broker": (1e6, 9e6, 1e6), "proxy": (2e6, 2e6, 5e6)}.items()
        for at, value in enumerate(values)
    ]
    with Results.open(record_run(tmp_path, samples=told)) as results:
        assert grown_bytes(results) == 8e6


def test_a_wrong_answer_decides_the_exit_code_before_failed_checks(tmp_path: Path) -> None:
    def wrong(document: Document) -> list[dict[str, Any]]:
        beside = answers(document) if document.name == "stuck" else []
        return [*beside, request(group=document.clients[0].name, outcome="wrong")]

    run, options = FakeExperiment(wrong), DemoOptions(30, clients=1, out=tmp_path)
    assert run_demo(options, run=run).exit_code is ExitCode.CORRECTNESS
